"""Makes standard output and standard error reliable even if they are slow, full, closed, or limited to ASCII.

After ``prepare()``, code uses ``sys.stdout`` and ``sys.stderr`` as usual. This module imports nothing slow.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NO = ("0", "false", "no")  #: values that turn an environment variable off
COLOURED = ("FORCE_COLOR", "TTY_COMPATIBLE")  #: environment variables with which rich treats every output as a terminal
_SIZES = ("COLUMNS", "LINES")


def prepare() -> None:
    """Make the standard streams reliable, and correct environment variables that rich would misread. Safe to repeat."""
    for name in COLOURED:
        if os.environ.get(name, "").strip().lower() in _NO:  # rich would read the value `0` or `no` as yes
            del os.environ[name]
    for name in _SIZES:
        if name in os.environ and not _is_size(os.environ[name]):  # rich would print nothing into 0 columns
            del os.environ[name]
    if sys.stdin is None:
        _opened(os.O_RDONLY)  # otherwise the next opened file would become standard input
    sys.stdout, sys.stderr = _prepared("stdout"), _prepared("stderr")


class Closed(OSError):
    """Error of a write while standard output is closed."""

    def __init__(self) -> None:
        sentence = "standard output is closed, so nothing can be printed; redirect it to a file or /dev/null"
        super().__init__(errno.EBADF, sentence)

    def __str__(self) -> str:
        return str(self.strerror)


class Lasting(io.FileIO):
    """A stream that writes its whole content, however slow the reader is.

    Only the first write error is raised, and none with ``mute``. All later output is discarded, because Python's flush
    at exit would fail again. A closed pipe or terminal raises ``BrokenPipeError``.
    """

    def __init__(self, number: int, name: str, *, mute: bool):
        super().__init__(number, "w", closefd=False)
        self.name = name
        self._mute = mute
        self._lost = False

    def write(self, content: ReadableBuffer, /) -> int:
        """Write all of ``content``, or discard it after an earlier error. Raises ``OSError`` for the first
        error only.
        """
        whole = memoryview(content).cast("B")
        try:
            left = whole if not self._lost else whole[:0]
            while left:
                left = left[self._written(left) :]
        except OSError as error:
            self._lost = True
            if not self._mute:
                if error.errno == errno.EIO:
                    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
                if error.errno == errno.EBADF:
                    raise Closed from error
                raise
        return len(whole)

    def _written(self, part: memoryview) -> int:
        while True:
            number = super().write(part)
            if number is not None:  # `write` returns None while a non-blocking pipe is full
                return number
            waiting = select.poll()
            waiting.register(self, select.POLLOUT)
            waiting.poll()


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text[:9]) > 0


def _opened(flags: int) -> int:
    number = os.open(os.devnull, flags)
    os.set_inheritable(number, number <= 2)  # child processes must inherit only the standard streams
    return number


def _prepared(name: Literal["stdout", "stderr"]) -> io.TextIOWrapper:
    """Return a reliable stream in place of the stream ``name``. An object that is not a file, as in a test, is kept."""
    stream, mute = getattr(sys, name), name == "stderr"
    if stream is None:  # Python sets a stream to None if the shell has closed it (`>&-`)
        closed = Lasting(_opened(os.O_WRONLY if mute else os.O_RDONLY), f"<{name}>", mute=mute)
        return io.TextIOWrapper(io.BufferedWriter(closed), encoding="utf-8", errors="replace", line_buffering=mute)
    if type(stream) is not io.TextIOWrapper:
        return stream  # type: ignore[no-any-return]  # a foreign object
    if stream.errors in ("strict", "surrogateescape"):  # Python uses surrogateescape if no locale is set
        # a character that an ASCII terminal lacks must not raise an error
        stream.reconfigure(errors="replace")
    # an unbuffered stream has no attribute `raw`, and is itself the raw stream
    raw = getattr(stream.buffer, "raw", stream.buffer)
    if type(raw) is not io.FileIO or raw.fileno() != {"stdout": 1, "stderr": 2}[name]:
        return stream
    stream.flush()
    lasting = Lasting(raw.fileno(), f"<{name}>", mute=mute)
    unbuffered = stream.buffer is raw
    return io.TextIOWrapper(
        io.BufferedWriter(lasting, 1 if unbuffered else io.DEFAULT_BUFFER_SIZE),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=unbuffered,
    )
