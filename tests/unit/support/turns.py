"""A long line between a client and a server, and how often the client waits for it: its round trips, counted.

What one side says is handed on once it has nothing more to say, as if it were far away: so the other answers all of it
at once, and each flight of a client that answers one of the server's is a round trip.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_QUIET_S = 0.2  #: who has said nothing for so long waits for the other side


@dataclass
class Line:
    """A running line; ``port`` is its near end, on 127.0.0.1."""

    port: int
    trips: int = 1  #: round trips so far; the first is TCP's own
    flights: list[tuple[str, int]] = field(default_factory=list)  #: who said how many bytes

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([near, far], [], [])
            side = far if far in ready else near  # what the server has said is heard before the client goes on
            said = _flight(side)
            if not said:
                return
            name = "server" if side is far else "client"
            if name == "client" and (not self.flights or self.flights[-1][0] == "server"):
                self.trips += 1
            self.flights.append((name, len(said)))
            (near if side is far else far).sendall(said)


def _flight(side: socket.socket) -> bytes:
    """All that one side says until it waits."""
    said = b""
    while select.select([side], [], [], _QUIET_S)[0]:
        piece = side.recv(1 << 20)
        if not piece:
            break
        said += piece
    return said


@contextmanager
def line_to(port: int) -> Iterator[Line]:
    """A line to a server on this machine, for one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = Line(listener.getsockname()[1])

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
