"""A listening socket of 127.0.0.1 and the thread that takes its connections; closed, nothing of either is left."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


class Listener:
    """Gives each connection to ``meet``, in its own thread, until it is closed; an ``OSError`` of ``meet`` ends it."""

    def __init__(self, meet: Callable[[socket.socket], object]):
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.port: int = self._socket.getsockname()[1]
        self._meet = meet
        self._thread = threading.Thread(target=self._accept, name=f"listener-{self.port}", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._meet(self._socket.accept()[0])

    def close(self) -> None:
        """Take no more connections, and wait for the thread.

        While a thread waits in ``accept``, closing the socket alone ends neither: its port would go on answering, and
        a system call that is begun anew (a process that was stopped and goes on) would take the connections of
        whichever socket has the descriptor's number by then: those of another test's server.
        """
        with suppress(OSError):  # it has been closed already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
