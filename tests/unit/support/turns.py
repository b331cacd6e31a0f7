"""A long line between a client and a server, and how often the client waits for it: its round trips, counted.

What one side says is handed on once it has nothing more to say, as if it were far away: so the other answers all of it
at once, and each flight of a client that answers one of the server's is a round trip. Who has said nothing for a while
and has nothing to do waits; a process that would like to run on a machine under load has not spoken out yet.
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

_QUIET_S = 0.02  #: between two looks whether there is more
_LOOKS = 10  #: in a row at which nothing comes, and everybody waits
_LONGEST_S = 60.0  #: for that: whoever never waits is neither of the two


@dataclass
class Line:
    """A running line; ``port`` is its near end, on 127.0.0.1."""

    port: int
    server: int  #: its process
    trips: int = 1  #: round trips so far; the first is TCP's own
    flights: list[tuple[str, int]] = field(default_factory=list)  #: who said how many bytes
    #: threads of this process that have nothing to do with the client, which is made in the thread that makes the line
    strangers: frozenset[int] = frozenset()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([near, far], [], [])
            side = far if far in ready else near  # what the server has said is heard before the client goes on
            said = self._flight(side)
            if not said:
                return
            name = "server" if side is far else "client"
            if name == "client" and (not self.flights or self.flights[-1][0] == "server"):
                self.trips += 1
            self.flights.append((name, len(said)))
            (near if side is far else far).sendall(said)

    def _flight(self, side: socket.socket) -> bytes:
        """All that one side says until it waits."""
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
        """Whether one of the client's threads, or of the server's processes, runs or would like to."""
        mine = self.strangers | {threading.get_native_id()}
        client = (task for task in _threads(os.getpid()) if int(task.name) not in mine)
        return any(_state(task) in "RD" for task in (*client, *_tasks(self.server)))


def _threads(process: int) -> Iterator[Path]:
    return Path(f"/proc/{process}/task").glob("*")


def _tasks(process: int) -> Iterator[Path]:
    """The threads of a process and of all that it has started."""
    for task in _threads(process):
        yield task
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                yield from _tasks(int(child))


def _state(task: Path) -> str:
    """The state of a thread; ``X`` once it is gone."""
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
