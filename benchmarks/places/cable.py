"""Delayed network cable: a program that holds every Ethernet frame for a fixed time, in each direction.

    python cable.py FD NAME DELAY

``FD`` is the file descriptor of a tap in another network namespace, opened by the parent process. The program creates
the tap ``NAME``, then prints ``ready``. Frames keep their order, and none are dropped, as with netem's plain ``delay``.
The program uses only the standard library.
"""

import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA  #: ioctl request that creates a network interface (linux/if_tun.h)
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
FRAME_BYTES = 65536


def open_tap(name: str) -> int:
    """Create a tap interface in the current network namespace; return its file descriptor.

    The interface exists until the descriptor is closed.
    """
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return descriptor


class Way:
    """One direction of the cable, with a queue of frames and the times to forward them."""

    def __init__(self, source: int, sink: int, delay_s: float):
        self.source, self.sink, self._delay_s = source, sink, delay_s
        self._held: deque[tuple[float, bytes]] = deque()

    def take(self, now_s: float) -> None:
        """Queue all frames that have arrived at ``source``."""
        while True:
            try:
                frame = os.read(self.source, FRAME_BYTES)
            except OSError:  # os.read fails if no frame is left or the interface is down
                return
            self._held.append((now_s + self._delay_s, frame))

    def pass_on(self, now_s: float) -> None:
        """Forward all frames that are due at ``now_s``. A frame that the other end rejects is lost."""
        while self._held and self._held[0][0] <= now_s:
            try:
                os.write(self.sink, self._held.popleft()[1])
            except OSError:
                continue

    def due_s(self) -> float:
        """Return the point in time at which to forward the next frame; infinite without frames."""
        return self._held[0][0] if self._held else float("inf")


def carry(outer: int, inner: int, delay_s: float) -> None:
    """Forward frames in both directions, each after ``delay_s``, until this process is killed."""
    ways = [Way(outer, inner, delay_s), Way(inner, outer, delay_s)]
    while True:
        due_s = min(way.due_s() for way in ways)
        wait_s = None if due_s == float("inf") else max(0.0, due_s - time.monotonic())
        ready = select.select([outer, inner], [], [], wait_s)[0]
        now_s = time.monotonic()
        for way in ways:
            if way.source in ready:
                way.take(now_s)
            way.pass_on(now_s)


def main() -> None:
    """Run the command line."""
    outer, name, delay_s = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    inner = open_tap(name)
    print("ready", flush=True)
    carry(outer, inner, delay_s)


if __name__ == "__main__":
    main()
