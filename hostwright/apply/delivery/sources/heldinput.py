"""The standard input of a program on a host that works for as long as somebody here wants it to."""

from __future__ import annotations

import threading


class HeldInput:
    """A first line, and then nothing until ``end``: what reads it takes the end for the end of its work, and so it does
    where the connection is lost or this process is killed. The line may be a secret: it is in no argument and no file.
    """

    def __init__(self, line: str):
        self._line = f"{line}\n".encode()
        self._ended = threading.Event()

    def read(self, size: int, /) -> bytes:
        """See ``transport.Readable``."""
        piece, self._line = self._line[:size], self._line[size:]
        if not piece:
            self._ended.wait()
        return piece

    def end(self) -> None:
        """Nobody wants it any more."""
        self._ended.set()
