"""A line with a long delay between a client and a server, which counts the client's round trips.

Data of one side is passed on once that side has no more to send, as over a long distance. So the other side responds to
all of it at once, and each flight of the client that follows one of the server is a round trip. A side waits if it has
been silent and idle for a while; on a loaded machine, a runnable process is not idle.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_QUIET_S = 0.02  #: between two checks for more data
_LOOKS = 10  #: consecutive checks without data while both sides wait
_LONGEST_S = 60.0  #: limit of these checks


@dataclass
class Line:
    """A running line; ``port`` is its near end, on 127.0.0.1."""

    port: int
    server: int  #: its process id
    trips: int = 1  #: round trips so far; the first is TCP's own
    flights: list[tuple[str, int]] = field(default_factory=list)  #: side and number of bytes
    #: threads of this process that are not the client's; the client runs in the thread that creates the line
    strangers: frozenset[int] = frozenset()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([near, far], [], [])
            side = far if far in ready else near  # the server's data goes first
            said = self._flight(side)
            if not said:
                return
            name = "server" if side is far else "client"
            if name == "client" and (not self.flights or self.flights[-1][0] == "server"):
                self.trips += 1
            self.flights.append((name, len(said)))
            (near if side is far else far).sendall(said)

    def _flight(self, side: socket.socket) -> bytes:
        """All data of one side until it waits."""
        said, quiet, last_s = b"", 0, time.monotonic()
        while quiet < _LOOKS and time.monotonic() < last_s + _LONGEST_S:
            if not select.select([side], [], [], _QUIET_S)[0]:
                quiet = 0 if self._busy() else quiet + 1
                continue
            piece, quiet, last_s = side.recv(1 << 20), 0, time.monotonic()
            if not piece:
                break
            said += piece
        return said

    def _busy(self) -> bool:
        """Whether a thread of the client, or a process of the server, is running or runnable."""
        mine = self.strangers | {threading.get_native_id()}
        client = (task for task in _threads(os.getpid()) if int(task.name) not in mine)
        return any(_state(task) in "RD" for task in (*client, *_tasks(self.server)))


def _threads(process: int) -> Iterator[Path]:
    return Path(f"/proc/{process}/task").glob("*")


def _tasks(process: int) -> Iterator[Path]:
    """The threads of a process and of its descendants."""
    for task in _threads(process):
        yield task
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                yield from _tasks(int(child))


def _state(task: Path) -> str:
    """The state of a thread; ``X`` once it has ended."""
    with suppress(OSError):
        return (task / "stat").read_text().rpartition(") ")[2][0]
    return "X"


@contextmanager
def line_to(port: int, server: int) -> Iterator[Line]:
    """A line to a port of a server on this machine, for one connection from this thread; ``server`` is its process."""
    here = threading.get_native_id()
    others = frozenset(int(task.name) for task in _threads(os.getpid())) - {here}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = Line(listener.getsockname()[1], server, strangers=others)

        def serve() -> None:
            with suppress(OSError):
                near, _ = listener.accept()
                with near, socket.create_connection(("127.0.0.1", port)) as far:
                    line._carry(near, far)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield line
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
