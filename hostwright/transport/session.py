"""One host's open session: commands, each with a deadline and an output limit, over raw channels of SSH.

``Session`` is what everything above knows of a host; how its commands are started differs for SSH (``SshSession``) and
for this machine itself (``local.LocalSession``). Fabric's ``run`` moves 100 bytes/s into a command and 1 MB/s out of
it; a raw channel of the same connection, 450 MB/s.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from hostwright.common.errors import HostError, ProtocolError, Unreachable
from hostwright.common.text import printable
from hostwright.transport.exchange import UNKNOWN_STATUS, Allowance, Deadline, Ends, Output, Target
from hostwright.transport.frame import NOISE_CAP_BYTES, Frame
from hostwright.transport.streams import Channel, Exchange, Readable

if TYPE_CHECKING:
    import fabric
    import paramiko

CAP_BYTES = 16 * 1024 * 1024
_GRACE_S = 0.25  #: how long after a deadline a call stuck inside paramiko is aborted
_SHOWN = 200  #: characters of what a login shell printed, in a sentence
_LOST_S = 0.05  #: paramiko closes the channels a moment before it reports that the connection is gone


class Session(ABC):
    """An open session on one host, as its login user; ``RootShell`` runs programs as root over it.

    Close it, or use it as a context manager. Several threads may run commands at once.
    """

    def __init__(
        self,
        target: Target,
        endpoint: str,
        on_close: Callable[[], None] = lambda: None,
        allowance: Allowance | None = None,
    ):
        self.host = target
        self.endpoint = endpoint  #: ``user@address:port`` as finally resolved
        self.ends = Ends()
        self.execs = 0  #: commands begun so far
        self.noise = b""  #: the beginning of what the login shell prints before a command; see ``frame``
        self.noise_note = ""  #: what ``login.startfiles`` has found out about it
        self.idle: list[Callable[[], None]] = []  #: end channels that wait for work, where a host refuses one more
        self._on_close = on_close
        self._allowance = allowance or Allowance()
        self._lock = threading.Lock()
        self._closed = False

    @abstractmethod
    def run(
        self,
        command: str,
        *,
        stdin: bytes | Readable | None = None,
        timeout_s: float,
        idle_s: float | None = None,
        cap_bytes: int = CAP_BYTES,
        on_stdout: Callable[[bytes], None] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
        name: str = "",
    ) -> Output:
        """Run ``command``, POSIX sh, as the login user and return its status and output, whatever the status is.

        ``/bin/sh`` runs it, whatever the login shell is and prints (see ``frame``). ``stdin`` is sent while the output
        is read; the command then sees end of file. ``timeout_s`` bounds all of it, ``idle_s`` the time in which not
        one byte moves in either direction. More than ``cap_bytes`` of output cut the command off (``truncated``).
        ``on_stdout`` gets standard output as it comes, in this thread; ``Output.stdout`` is then empty; ``on_stderr``
        likewise. Errors call the command by its ``name``, where it has one. Raises
        ``Unreachable`` when the time is over, the connection is lost or the login shell does not run the command, and
        what ``stdin`` or the two functions raise. Values go into a command through ``common.quoting.sh`` alone:

        >>> from hostwright.common.quoting import sh
        >>> output = session.run(sh("wc -c; test -d %s", "/no such"), stdin=b"hello", timeout_s=10)
        >>> output.status, output.stdout.split()
        (1, [b'5'])
        """

    @abstractmethod
    def _end(self) -> None:
        """Cut the session, in any thread: commands that are running here end as lost."""

    def close(self) -> None:
        """End the session. Closing twice does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._end()
        self._on_close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ChannelSession(Session):
    """A session that has a channel for each command."""

    @abstractmethod
    def _start(self, command: str, deadline: Deadline) -> Channel:
        """Begin a command, which the login shell reads. Raises ``Unreachable``."""

    @abstractmethod
    def _lost(self, channel: Channel) -> bool:
        """Whether the session was lost, where a missing status may also mean that a signal ended the command."""

    def run(
        self,
        command: str,
        *,
        stdin: bytes | Readable | None = None,
        timeout_s: float,
        idle_s: float | None = None,
        cap_bytes: int = CAP_BYTES,
        on_stdout: Callable[[bytes], None] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
        name: str = "",
    ) -> Output:
        """See ``Session``."""
        with self._lock:
            self.execs += 1
        name = _short(name or command)
        deadline = Deadline(timeout_s)
        rescue = threading.Timer(timeout_s + _GRACE_S, self._end)
        rescue.daemon = True
        rescue.start()
        frame = Frame(command)
        try:
            with self._allowance.command(cap_bytes):
                channel = self._start(frame.line, deadline)
                exchange = Exchange(channel, frame, stdin, cap_bytes, on_stdout, on_stderr=on_stderr)
                try:
                    in_time = exchange.run(deadline, idle_s)
                except BaseException:
                    _discard(channel)
                    raise
                (_close if in_time else _discard)(channel)
        finally:
            rescue.cancel()
        frame.rest()
        self.noise = self.noise or frame.noise
        if self._allowance.fault:
            raise self._failure("")
        if not in_time and (frame.stdout.begun or (deadline.passed() and not frame.noise)):
            if frame.noise_bytes > NOISE_CAP_BYTES:
                raise self._failure(f"it sends more and more that is no output of {name}")
            waited = f"{timeout_s:g} s" if deadline.passed() else f"{idle_s:g} s without a sign of life"
            raise self._failure(f"{name} did not end within {waited}: the host hangs, or it needs longer")
        if not frame.stdout.begun:
            raise self._never_began(channel, frame, name, in_time=in_time)
        ended = frame.stdout.status
        if ended is None and channel.exit_status == UNKNOWN_STATUS and not exchange.truncated and self._lost(channel):
            raise self._failure(f"the connection was lost while {name} ran")
        status = UNKNOWN_STATUS if exchange.truncated else channel.exit_status if ended is None else ended
        return Output(
            status, bytes(exchange.stdout), bytes(exchange.stderr), exchange.truncated, timeout_s - deadline.left_s()
        )

    def _never_began(self, channel: Channel, frame: Frame, name: str, *, in_time: bool) -> HostError:
        """The error for a command that the login shell did not run."""
        text = " ".join(printable(frame.noise.decode("utf-8", errors="replace")).split())[:_SHOWN]
        printed = f'it printed "{text}"' if text else "it printed nothing"
        if frame.noise_bytes > NOISE_CAP_BYTES:
            sentence = f"its login shell prints without end instead of running a command; {printed}"
        elif not in_time:
            hint = "does a start file, such as ~/.bashrc, wait for input or start another shell?"
            sentence = f"its login shell did not run {name} in time; {printed}; {hint}"
        elif channel.exit_status == UNKNOWN_STATUS or self._lost(channel):
            return self._failure(f"the connection was lost while {name} ran")
        else:
            hint = "is it a shell that runs commands, and does no start file, such as ~/.bashrc, end it?"
            sentence = f"its login shell ended with {channel.exit_status} and ran no command; {printed}; {hint}"
        return Unreachable(self.host.name, f"{sentence} ({self.endpoint})", passing=not (in_time or text))

    def _failure(self, sentence: str) -> HostError:
        """The error for a connection that does not do what it should; the one that no other would mend comes first."""
        if self._allowance.fault:
            return ProtocolError(self.host.name, f"{self._allowance.fault} ({self.endpoint})")
        return Unreachable(self.host.name, f"{sentence} ({self.endpoint})", passing=True)


class SshSession(ChannelSession):
    """A session over an open SSH connection, with a channel for each command."""

    def __init__(
        self,
        target: Target,
        endpoint: str,
        connection: fabric.Connection,
        on_close: Callable[[], None] = lambda: None,
        allowance: Allowance | None = None,
    ):
        super().__init__(target, endpoint, on_close, allowance)
        self._connection = connection

    def _start(self, command: str, deadline: Deadline) -> paramiko.Channel:
        from paramiko import ChannelException, SSHException

        transport = self._connection.transport
        try:
            channel: paramiko.Channel = self._open(transport, deadline)
        except ChannelException as error:
            sentence = f"it refuses one more channel: {error.text} (MaxSessions in its sshd_config?)"
            raise self._failure(sentence) from error
        except (SSHException, EOFError, OSError) as error:
            raise self._failure(self._silence(deadline)) from error
        try:
            channel.exec_command(command)
        except (SSHException, EOFError, OSError) as error:
            if transport.is_active():
                raise self._failure("it lets this user log in, but not run commands") from error
            raise self._failure(self._silence(deadline)) from error
        return channel

    def _open(self, transport: paramiko.Transport, deadline: Deadline) -> paramiko.Channel:
        """Open a channel. A host that refuses one is asked again: it may have as many as it allows, of which one waits
        for work, or one is closed and not yet forgotten.
        """
        from paramiko import ChannelException

        try:
            return transport.open_session(timeout=deadline.left_s())
        except ChannelException:
            if self.idle:
                self.idle.pop()()
            transport.global_request("keepalive@openssh.com")  # when it answers, sshd has forgotten closed channels
            return transport.open_session(timeout=deadline.left_s())

    def _silence(self, deadline: Deadline) -> str:
        if deadline.passed():
            return f"it did not take a command within {deadline.timeout_s:g} s: the host hangs"
        return "the connection was lost"

    def _lost(self, channel: Channel) -> bool:
        transport = self._connection.transport
        if channel.eof_received:
            transport.join(_LOST_S)
        return not (channel.eof_received and transport.is_active())

    def _end(self) -> None:
        self._connection.client.close()


def _discard(channel: Channel) -> None:
    """Close a channel without waiting: on a hung connection, even the close message can block."""
    threading.Thread(target=_close, args=(channel,), name="close-channel", daemon=True).start()


def _close(channel: Channel) -> None:
    from paramiko import SSHException

    with suppress(OSError, EOFError, SSHException):  # the connection is gone, and the channel with it
        channel.close()


def _short(command: str) -> str:
    """A command for use in a sentence: one line, at most 60 characters."""
    line = " ".join(command.split())
    return f"{line[:57]}..." if len(line) > 60 else line
