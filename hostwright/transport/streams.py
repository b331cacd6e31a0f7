"""Transfers standard input, output and error of a framed command over one channel."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from hostwright.transport.exchange import Deadline
from hostwright.transport.frame import NOISE_CAP_BYTES, Frame, Stream

#: time limit in seconds until a command starts (our choice), because shell startup files may be slow
START_S = 60.0
#: maximum number of bytes of one read, equal to paramiko's receive window
_RECV_BYTES = 2 * 1024 * 1024
_PACKET_ROOM = 64  #: number of bytes that paramiko reserves for headers in a packet
#: maximum number of bytes of one command's standard error kept in memory
_STDERR_CAP_BYTES = 16 * 1024 * 1024
_FREED_S = 0.25  #: seconds to wait until the host frees the channel of an ended command (our choice)


class Readable(Protocol):
    """A stream of bytes: a file, or any object with ``read``."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most ``size``; the result is empty at the end of the stream."""


class CommandEnd(Protocol):
    """An event that is set when a command ends."""

    def wait(self, timeout: float | None = None) -> bool:
        """Return whether the command ends within ``timeout`` seconds."""


class Channel(Protocol):
    """The channel of a running command: paramiko's channel, or a process on this machine."""

    @property
    def closed(self) -> bool:
        """Whether the channel was closed or cut."""

    @property
    def eof_received(self) -> int:
        """Whether standard output and error have both ended (an ``int``, as in paramiko)."""

    @property
    def exit_status(self) -> int:
        """The exit status of the command; ``UNKNOWN_STATUS`` if the command has none."""

    @property
    def status_event(self) -> CommandEnd:
        """The event that is set when the command ends."""

    @property
    def out_window_size(self) -> int:
        """Number of bytes that can be sent now without blocking."""

    @property
    def out_max_packet_size(self) -> int:
        """Best size of the data for one call of ``sendall``, in bytes."""

    def fileno(self) -> int:
        """Return a file descriptor that is readable when an output has data or has ended."""

    def recv_ready(self) -> bool:
        """Whether standard output has data."""

    def recv(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes of standard output; the result is empty at the end of the stream."""

    def recv_stderr_ready(self) -> bool:
        """Whether standard error has data."""

    def recv_stderr(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes of standard error; the result is empty at the end of the stream."""

    def sendall(self, data: bytes, /) -> object:
        """Write all of ``data`` to standard input; may block."""

    def shutdown_write(self) -> None:
        """Close standard input."""

    def close(self) -> None:
        """Close the channel and release its resources."""


class Exchange:
    """Sends standard input to one channel and receives the output of the framed command."""

    def __init__(
        self,
        channel: Channel,
        frame: Frame,
        stdin: bytes | Readable | None,
        cap_bytes: int,
        on_stdout: Callable[[bytes], None] | None,
        *,
        on_stderr: Callable[[bytes], None] | None = None,
    ):
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.truncated = False
        self._channel = channel
        self._frame = frame
        self._stdin = stdin
        self._room = cap_bytes
        self._on_stdout = on_stdout or self.stdout.extend
        self._on_stderr = on_stderr or self.stderr.extend
        self._moved = time.monotonic()
        self._stdin_error: BaseException | None = None

    def run(self, deadline: Deadline, idle_s: float | None) -> bool:
        """Send standard input and receive output until the command ends or is cut off; return ``False`` on a timeout.

        The command ends at the end marks of its frame, because a background process may keep the channel open.
        """
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        start, sending = Deadline(START_S), False
        while not (self.truncated or self._frame.ended):
            ended = self._channel.eof_received or self._channel.closed
            if not self._receive():
                if ended:
                    self._rest()
                    break
                poll.poll(self._wait_s(deadline, start, idle_s) * 1000)
            if self._frame.stdout.begun and not sending:
                sending = True
                self._begin_sending()
            if self._stdin_error is not None:
                raise self._stdin_error
            if self._wait_s(deadline, start, idle_s) == 0 or self._frame.noise_bytes > NOISE_CAP_BYTES:
                return False
        if self._frame.ended:
            # A new channel might be refused until the host has freed this channel.
            self._channel.status_event.wait(min(deadline.left_s(), _FREED_S))
            return True
        return self.truncated or self._channel.status_event.wait(deadline.left_s())

    def _wait_s(self, deadline: Deadline, start: Deadline, idle_s: float | None) -> float:
        left_s = deadline.left_s()
        if not self._frame.stdout.begun:
            return min(left_s, start.left_s())
        return left_s if idle_s is None else max(0.0, min(left_s, self._moved + idle_s - time.monotonic()))

    def _begin_sending(self) -> None:
        stdin = self._stdin or b""
        room = self._channel.out_window_size - len(self._frame.program)
        if isinstance(stdin, bytes) and len(stdin) <= room:
            self._send()  # This call cannot block, because the program fits into the send window.
        else:
            threading.Thread(target=self._send, name="stdin", daemon=True).start()

    def _receive(self) -> bool:
        channel, some = self._channel, False
        if channel.recv_ready():
            some = self._take(channel.recv(_RECV_BYTES), self._frame.stdout, self._on_stdout)
        if not self.truncated and channel.recv_stderr_ready():
            some = self._take(channel.recv_stderr(_RECV_BYTES), self._frame.stderr, self._on_stderr) or some
        return some

    def _take(self, data: bytes, stream: Stream, sink: Callable[[bytes], None]) -> bool:
        self._moved = time.monotonic()
        self._pass_on(stream.feed(data), sink)
        return bool(data)

    def _rest(self) -> None:
        stdout, stderr = self._frame.rest()
        self._pass_on(stdout, self._on_stdout)
        self._pass_on(stderr, self._on_stderr)

    def _pass_on(self, data: bytes, sink: Callable[[bytes], None]) -> None:
        self.truncated = self.truncated or len(data) > self._room
        kept = data[: self._room]
        self._room -= len(kept)
        if kept:
            sink(kept)
        self.truncated = self.truncated or len(self.stderr) > _STDERR_CAP_BYTES

    def _send(self) -> None:
        from paramiko import SSHException

        chunks = self._chunks(self._channel.out_max_packet_size - _PACKET_ROOM)
        while True:
            try:
                chunk = next(chunks, b"")
            except Exception as error:  # noqa: BLE001 - the caller's stream: raised again in the caller's thread
                self._stdin_error = error
                chunk = b""
            try:
                if not chunk:
                    self._channel.shutdown_write()
                    return
                self._channel.sendall(chunk)
            except (OSError, EOFError, SSHException):
                return
            self._moved = time.monotonic()

    def _chunks(self, size: int) -> Iterator[bytes]:
        known = self._frame.program + (self._stdin if isinstance(self._stdin, bytes) else b"")
        yield from (known[start : start + size] for start in range(0, len(known), size))
        if self._stdin is not None and not isinstance(self._stdin, bytes):
            while chunk := self._stdin.read(size):
                yield chunk
