"""Standard output and error as they are found: slow, full, gone, or of fewer letters than we write.

``prepare`` is the one place that knows: what prints, in whatever room, writes to ``sys.stdout`` and ``sys.stderr``.
Nothing slow is imported here.
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

_NO = ("0", "false", "no")  #: values of a variable that asks for something, with which it asks for nothing
COLOURED = ("FORCE_COLOR", "TTY_COMPATIBLE")  #: variables with which rich takes every log for a terminal
_SIZES = ("COLUMNS", "LINES")


def prepare() -> None:
    """Make the streams of this process fit for what they lead to, and what the environment says of them fit for those
    who read it. May be called more than once."""
    for name in COLOURED:
        if os.environ.get(name, "").strip().lower() in _NO:  # rich, for one, takes any value for a yes
            del os.environ[name]
    for name in _SIZES:
        if name in os.environ and not _is_size(os.environ[name]):  # in no columns, nothing would be shown at all
            del os.environ[name]
    if sys.stdin is None:
        _opened(os.O_RDONLY)  # else the next file that is opened would be standard input
    sys.stdout, sys.stderr = _prepared("stdout"), _prepared("stderr")


class Closed(OSError):
    """Standard output is closed, and something is to be printed."""

    def __init__(self) -> None:
        sentence = "standard output is closed, so nothing can be printed: redirect it to a file or /dev/null"
        super().__init__(errno.EBADF, sentence)

    def __str__(self) -> str:
        return str(self.strerror)


class Lasting(io.FileIO):
    """A stream that takes all that is written to it, however slowly its reader reads.

    Where it can take no more, that is said once, and the rest is discarded: a flush at Python's end would fail on it
    again. A reader that is gone, a terminal as well as a pipe, is a ``BrokenPipeError``. ``mute``: nothing is said,
    as of standard error, where it would be.
    """

    def __init__(self, number: int, name: str, *, mute: bool):
        super().__init__(number, "w", closefd=False)
        self.name = name
        self._mute = mute
        self._lost = False

    def write(self, content: ReadableBuffer, /) -> int:
        """Write all of it. Raises ``OSError``, once."""
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
        """How much could be written at once. A pipe that does not block, as programs of others leave it, is awaited."""
        while True:
            number = super().write(part)
            if number is not None:  # as FileIO says that it would have to wait
                return number
            waiting = select.poll()
            waiting.register(self, select.POLLOUT)
            waiting.poll()


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text[:9]) > 0


def _opened(flags: int) -> int:
    """The null device, at the lowest number that is free: that of a stream which a shell has closed."""
    number = os.open(os.devnull, flags)
    os.set_inheritable(number, number <= 2)  # as a standard stream is
    return number


def _prepared(name: Literal["stdout", "stderr"]) -> io.TextIOWrapper:
    """The stream of that name, or what stands in its place. One that is no file, as in a test, stays as it is."""
    stream, mute = getattr(sys, name), name == "stderr"
    if stream is None:  # `>&-`: print would say nothing, and show errors on the other stream
        closed = Lasting(_opened(os.O_WRONLY if mute else os.O_RDONLY), f"<{name}>", mute=mute)
        return io.TextIOWrapper(io.BufferedWriter(closed), encoding="utf-8", errors="replace", line_buffering=mute)
    if type(stream) is not io.TextIOWrapper:
        return stream  # type: ignore[no-any-return]  # whatever somebody has put there
    if stream.errors in ("strict", "surrogateescape"):  # the second is Python's where there is no locale
        stream.reconfigure(errors="replace")  # a terminal of ASCII shows what it can, and a name ends no verb
    raw = getattr(stream.buffer, "raw", stream.buffer)  # unbuffered, there is nothing between
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
