"""Bad connections: a TCP relay that damages the traffic between a controller and one host.

The bytes, both TCP connections, and the reactions of SSH and of the programs at both ends are real. Only the cause of
the damage is simulated.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from lab.config import Machine
from lab.records import read_record

Direction = Literal["host", "controller"]
_LOOPBACK = "127.0.0.1"
_CHUNK = 65536
_ABORT = struct.pack("ii", 1, 0)  # value of SO_LINGER (on, 0 s) with which closing a socket sends a reset


@dataclass(frozen=True, slots=True)
class Trouble:
    """Disturbance of a relayed connection after ``after_bytes`` in one direction.

    ``cut`` resets both ends, ``flip`` inverts the next byte, ``stall`` stops all traffic in both directions.
    """

    what: Literal["cut", "flip", "stall"]
    after_bytes: int
    toward: Direction = "host"  #: direction in which the relay counts and damages bytes
    times: int = 1  #: number of connections that the relay disturbs, beginning with the first


@dataclass(slots=True)
class Relay:
    """Running relay, with address and host key for an inventory, and counters."""

    host: str
    port: int
    known_hosts: str  #: line of known_hosts for the address of the relay
    trouble: Trouble | None
    connections: int = 0
    troubled: int = 0  #: number of connections disturbed so far
    _links: list[_Link] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, listener: socket.socket, target: tuple[str, int]) -> None:
        """Relay every connection until the listener is shut down."""
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(target, timeout=10)
            except OSError:
                near.close()  # a middlebox in front of a host that is down also closes connections at once
                continue
            far.settimeout(None)
            self.connections += 1
            self._links.append(_Link(self, near, far))

    def claims(self, toward: Direction, passed: int, size: int) -> int | None:
        """Return the offset of the disturbance in the next ``size`` bytes; ``None`` if the disturbance comes later.

        ``passed``: number of bytes already relayed in the direction ``toward``. ``troubled`` is increased.
        """
        trouble = self.trouble
        if trouble is None or trouble.toward != toward or not passed <= trouble.after_bytes < passed + size:
            return None
        with self._lock:
            if self.troubled >= trouble.times:
                return None
            self.troubled += 1
        return trouble.after_bytes - passed

    def stop(self) -> None:
        """End all relayed connections."""
        for link in self._links:
            link.end()


class _Link:
    def __init__(self, relay: Relay, near: socket.socket, far: socket.socket):
        self._relay, self._ends, self._stalled = relay, (near, far), threading.Event()
        ways: tuple[tuple[socket.socket, socket.socket, Direction], ...]
        ways = ((near, far, "host"), (far, near, "controller"))
        self._threads = [threading.Thread(target=self._pump, args=way, daemon=True) for way in ways]
        for thread in self._threads:
            thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, toward: Direction) -> None:
        try:
            self._copy(source, sink, toward)
        except OSError:  # an end of the connection was reset or closed
            self._abort()

    def _copy(self, source: socket.socket, sink: socket.socket, toward: Direction) -> None:
        passed = 0
        while data := source.recv(_CHUNK):
            begin = self._relay.claims(toward, passed, len(data))
            if begin is not None:
                data = self._disturb(sink, data, begin)
            if self._stalled.is_set():
                return
            sink.sendall(data)
            passed += len(data)
        sink.shutdown(socket.SHUT_WR)

    def _disturb(self, sink: socket.socket, data: bytes, begin: int) -> bytes:
        what = self._relay.trouble.what if self._relay.trouble else ""
        if what == "flip":
            return data[:begin] + bytes((data[begin] ^ 0xFF,)) + data[begin + 1 :]
        sink.sendall(data[:begin])
        self._stalled.set()
        if what == "cut":
            self._abort()
        return b""

    def _abort(self) -> None:
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
                end.shutdown(socket.SHUT_RD)  # this shutdown wakes the other thread without sending a FIN
            end.close()

    def end(self) -> None:
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()


@contextmanager
def relay(machine: Machine, trouble: Trouble | None = None, *, port: int = 22) -> Iterator[Relay]:
    """Relay a free loopback port of this machine to ``port`` of the host during the context.

    ``trouble``: disturbance of the connections.
    """
    with socket.create_server((_LOOPBACK, 0)) as listener:
        own = listener.getsockname()[1]
        key = " ".join(read_record(machine.directory).host_key.split()[:2])
        running = Relay(_LOOPBACK, own, f"[{_LOOPBACK}]:{own} {key}\n", trouble)
        server = threading.Thread(target=running.serve, args=(listener, (str(machine.address), port)), daemon=True)
        server.start()
        try:
            yield running
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join()
            running.stop()
