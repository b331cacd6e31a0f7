"""A session on one host: runs commands, each with a deadline and an output limit, over raw SSH channels.

``Session`` is the interface for all other packages. ``SshSession`` starts commands over SSH, ``local.LocalSession`` on
this machine. A raw channel transfers 450 MB/s; Fabric's ``run`` receives 1 MB/s.
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
_GRACE_S = 0.25  #: seconds after a deadline until the session is closed to abort a hanging call
_SHOWN = 200  #: maximum number of characters of a login shell's output in an error text
_LOST_S = 0.05  #: seconds to wait for paramiko's report of a lost connection


class Session(ABC):
    """An open session on one host, as the login user. Close it, or use it as a context manager. Thread-safe."""

    def __init__(
        self,
        target: Target,
        endpoint: str,
        on_close: Callable[[], None] = lambda: None,
        allowance: Allowance | None = None,
    ):
        self.host = target
        self.endpoint = endpoint  #: server as ``user@address:port``, with all settings resolved
        self.ends = Ends()
        self.execs = 0  #: number of commands started in this session
        self.noise = b""  #: first bytes that the login shell printed before a command (see ``frame``)
        self.noise_note = ""  #: note for the operator about ``noise``
        #: functions that each close one idle channel, called if the host refuses a new channel
        self.idle: list[Callable[[], None]] = []
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
        """Run ``command`` (POSIX sh) as the login user, and return its status and output; any status is allowed.

        ``/bin/sh`` runs the command, whatever the login shell is. ``stdin`` is sent while the output is read.
        ``timeout_s`` limits the total time, ``idle_s`` the time without any byte in either direction. At ``cap_bytes``
        of output, the command is ended (``truncated``). ``on_stdout`` receives standard output as it arrives;
        ``Output.stdout`` is then empty. ``on_stderr`` does the same for standard error. Errors contain ``name``, if
        set, instead of the command.

        Raises ``Unreachable`` on a timeout, on a lost connection and if the login shell does not run the command, and
        the exceptions of ``stdin`` and of the callbacks. Insert values into a command only with ``common.quoting.sh``:

        >>> from hostwright.common.quoting import sh
        >>> output = session.run(sh("wc -c; test -d %s", "/no such"), stdin=b"hello", timeout_s=10)
        >>> output.status, output.stdout.split()
        (1, [b'5'])
        """

    @abstractmethod
    def _end(self) -> None:
        """Shut down the session. Any thread may call this; running commands then report a lost connection."""

    def close(self) -> None:
        """Close the session. A second call does nothing."""
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
    """A session with a channel for each command."""

    @abstractmethod
    def _start(self, command: str, deadline: Deadline) -> Channel:
        """Start ``command`` in the login shell. Raises ``Unreachable`` if it cannot be started by the deadline."""

    @abstractmethod
    def _lost(self, channel: Channel) -> bool:
        """Return whether the connection was lost. Otherwise, a signal ended the command without an exit status."""

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
        """Run a command (see ``Session.run``)."""
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
                raise self._failure(f"the host keeps sending data that is not output of {name}")
            waited = f"{timeout_s:g} s" if deadline.passed() else f"{idle_s:g} s without output"
            raise self._failure(f"{name} did not end within {waited}: the host hangs, or the command needs longer")
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
        text = " ".join(printable(frame.noise.decode("utf-8", errors="replace")).split())[:_SHOWN]
        printed = f'it printed "{text}"' if text else "it printed nothing"
        if frame.noise_bytes > NOISE_CAP_BYTES:
            sentence = f"its login shell prints endlessly and does not run a command; {printed}"
        elif not in_time:
            hint = "check whether a start file, such as ~/.bashrc, waits for input or starts another shell"
            sentence = f"its login shell did not run {name} in time; {printed}; {hint}"
        elif channel.exit_status == UNKNOWN_STATUS or self._lost(channel):
            return self._failure(f"the connection was lost while {name} ran")
        else:
            hint = "check whether it is a shell, and whether a start file, such as ~/.bashrc, ends it"
            sentence = f"its login shell ended with status {channel.exit_status} and ran no command; {printed}; {hint}"
        return Unreachable(self.host.name, f"{sentence} ({self.endpoint})", passing=not (in_time or text))

    def _failure(self, sentence: str) -> HostError:
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
            sentence = (
                f"the host refuses another channel: {error.text}; probably MaxSessions in the host's sshd_config is "
                "too low"
            )
            raise self._failure(sentence) from error
        except (SSHException, EOFError, OSError) as error:
            raise self._failure(self._silence(deadline)) from error
        try:
            channel.exec_command(command)
        except (SSHException, EOFError, OSError) as error:
            if transport.is_active():
                raise self._failure("the host allows this user to log in, but not to run commands") from error
            raise self._failure(self._silence(deadline)) from error
        return channel

    def _open(self, transport: paramiko.Transport, deadline: Deadline) -> paramiko.Channel:
        """Open a channel. If the host refuses the channel (MaxSessions), close an idle channel and retry once."""
        from paramiko import ChannelException

        try:
            return transport.open_session(timeout=deadline.left_s())
        except ChannelException:
            if self.idle:
                self.idle.pop()()
            # When the reply to this request arrives, sshd has freed all closed channels.
            transport.global_request("keepalive@openssh.com")
            return transport.open_session(timeout=deadline.left_s())

    def _silence(self, deadline: Deadline) -> str:
        if deadline.passed():
            return f"it did not start the command within {deadline.timeout_s:g} s: the host hangs"
        return "the connection was lost"

    def _lost(self, channel: Channel) -> bool:
        transport = self._connection.transport
        if channel.eof_received:
            transport.join(_LOST_S)
        return not (channel.eof_received and transport.is_active())

    def _end(self) -> None:
        self._connection.client.close()


def _discard(channel: Channel) -> None:
    """Close a channel in a thread, because closing can block if the connection hangs."""
    threading.Thread(target=_close, args=(channel,), name="close-channel", daemon=True).start()


def _close(channel: Channel) -> None:
    from paramiko import SSHException

    with suppress(OSError, EOFError, SSHException):  # If the connection is lost, the channel is already closed.
        channel.close()


def _short(command: str) -> str:
    line = " ".join(command.split())
    return f"{line[:57]}..." if len(line) > 60 else line
