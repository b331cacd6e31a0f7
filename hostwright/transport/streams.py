"""What goes into one exec channel and what comes out of it: the streams of a command in its frame."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from hostwright.transport.exchange import Deadline
from hostwright.transport.frame import NOISE_CAP_BYTES, Frame, Stream

START_S = 60.0  #: our choice: start files that load conda or nvm from a network's disk may take many seconds
_RECV_BYTES = 2 * 1024 * 1024  #: paramiko's receive window: take all available data at once
_PACKET_ROOM = 64  #: reserved by paramiko in a packet for its headers
_STDERR_CAP_BYTES = 16 * 1024 * 1024  #: kept in memory also where standard output is passed on as it comes
_FREED_S = 0.25  #: our choice: how long a command that has ended may take to free its channel on the host


class Readable(Protocol):
    """A stream of bytes: a file, or anything with its ``read``."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; empty at the end."""


class CommandEnd(Protocol):
    """What can be waited for: the end of a command."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it came within so many seconds."""


class Channel(Protocol):
    """One running command: paramiko's channel, as far as it is used, and a process of this machine (``local``)."""

    @property
    def closed(self) -> bool:
        """Whether nothing comes any more, since it was cut."""

    @property
    def eof_received(self) -> int:
        """Whether both outputs have ended."""

    @property
    def exit_status(self) -> int:
        """The exit status, or ``UNKNOWN_STATUS``."""

    @property
    def status_event(self) -> CommandEnd:
        """The end of the command."""

    @property
    def out_window_size(self) -> int:
        """How many bytes it takes at once without being waited for."""

    @property
    def out_max_packet_size(self) -> int:
        """How many bytes are best sent at a time."""

    def fileno(self) -> int:
        """A descriptor that can be read when something came on either output, or it ended."""

    def recv_ready(self) -> bool:
        """Whether standard output has something."""

    def recv(self, size: int, /) -> bytes:
        """What standard output has; empty at its end."""

    def recv_stderr_ready(self) -> bool:
        """Whether standard error has something."""

    def recv_stderr(self, size: int, /) -> bytes:
        """What standard error has; empty at its end."""

    def sendall(self, data: bytes, /) -> object:
        """Write to standard input, however long that takes."""

    def shutdown_write(self) -> None:
        """End standard input."""

    def close(self) -> None:
        """Let go of it."""


class Exchange:
    """Standard input into one channel, output out of it; both are those of the command in its frame."""

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
        """Send input and receive output until the command ends or is cut off; ``False`` if the time is over first.

        The command has ended at the end of its frame: what a start file left behind may hold the channel open.
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
            self._channel.status_event.wait(min(deadline.left_s(), _FREED_S))  # the host frees the channel
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
            self._send()  # the host has promised to accept this much, so this cannot block on the output
        else:
            threading.Thread(target=self._send, name="stdin", daemon=True).start()

    def _receive(self) -> bool:
        """Take what has arrived, and return whether there was anything."""
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
        """Send standard input. If the command or the connection ends first, ``_receive`` notices, and this returns."""
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
        """Pieces of exactly one packet: ``sendall`` would copy the rest of a longer piece again for each packet."""
        known = self._frame.program + (self._stdin if isinstance(self._stdin, bytes) else b"")
        yield from (known[start : start + size] for start in range(0, len(known), size))
        if self._stdin is not None and not isinstance(self._stdin, bytes):
            while chunk := self._stdin.read(size):
                yield chunk
