"""A listening socket on 127.0.0.1 with a thread that accepts its connections; `close` ends both."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


class Listener:
    """Calls ``meet`` with each connection in its own thread until it is closed; an ``OSError`` of ``meet`` ends it."""

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
        """Stop accepting connections and wait for the thread.

        Closing the socket alone does not wake a thread in ``accept``: its port would still accept connections. A
        restarted system call could even accept connections of another test's socket with the same descriptor number.
        """
        with suppress(OSError):  # already closed
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
