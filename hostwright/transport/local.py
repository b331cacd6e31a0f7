"""This machine as a host (``ansible_connection: local``): a process for each command in the place of a channel of SSH.

What runs is the same: the same frame around each command, root by the same sudo, an environment like a login's, not
like that of whoever started Hostwright. A command has no terminal and a session of its own, so that Ctrl-C ends no job.
"""

from __future__ import annotations

import os
import pwd
import select
import selectors
import socket
import subprocess
import threading
from contextlib import suppress

from hostwright.common.errors import Unreachable
from hostwright.transport.exchange import UNKNOWN_STATUS, Deadline, Target
from hostwright.transport.root.become import PATH, PROXIES
from hostwright.transport.session import ChannelSession
from hostwright.transport.streams import Channel

_PIPE_BYTES = 16 * 1024  #: what a pipe holds before a write to it waits: macOS's least; Linux has 64 KiB
_PIECE_BYTES = 64 * 1024  #: what is written to a pipe at a time: Linux's usual size of one


def open_local(target: Target) -> LocalSession:
    """A session on this machine. Raises ``Unreachable`` where the inventory gives the host an address elsewhere."""
    if target.address and not _is_own(target.address):
        raise Unreachable(
            target.name,
            f"ansible_connection is local, which means this machine, but {target.address} (ansible_host) is no address "
            "of it: correct the one that is wrong",
        )
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError as error:
        raise Unreachable(target.name, f"this machine has no account for the user id {os.getuid()}") from error
    return LocalSession(target, account)


class LocalSession(ChannelSession):
    """A session of the user who runs Hostwright, on this machine."""

    def __init__(self, target: Target, account: pwd.struct_passwd):
        super().__init__(target, f"{account.pw_name}@this machine")
        self._account = account
        self._running: set[Process] = set()

    def _start(self, command: str, deadline: Deadline) -> Channel:  # noqa: ARG002 - a process starts at once
        try:
            process = Process(command, self._account)
        except OSError as error:
            raise self._failure(f"no process can be started: {error.strerror or error}") from error
        with self._lock:
            self._running = {earlier for earlier in self._running if not earlier.closed} | {process}
            late = self._closed
        if late:
            process.cut()
        return process

    def _lost(self, channel: Channel) -> bool:
        return isinstance(channel, Process) and channel.lost

    def _end(self) -> None:
        with self._lock:
            running = tuple(self._running)
        for process in running:
            process.cut()


class Process:
    """One command as a process, with what ``Exchange`` uses of a channel.

    One thread reads, another may write, and any may cut it: ``_wake`` then ends both threads' waiting. As over SSH, the
    process itself is not ended, but finds its input and its outputs closed.
    """

    def __init__(self, command: str, account: pwd.struct_passwd):
        self._process = subprocess.Popen(
            ("/bin/sh", "-c", command),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, env=_environment(account), cwd=_home(account), umask=0o022, start_new_session=True,
        )  # fmt: skip
        self.closed = False
        self.lost = False  #: whether it was cut from outside
        self.status_event = self
        self.out_max_packet_size = _PIECE_BYTES
        self._in, self._out, self._err = (
            stream.fileno() for stream in (self._process.stdin, self._process.stdout, self._process.stderr) if stream
        )
        self.out_window_size = _PIPE_BYTES
        os.set_blocking(self._in, False)
        self._open = {self._out, self._err}  #: the outputs that have not ended
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._some = selectors.DefaultSelector()
        for descriptor in (*self._open, self._wake):
            self._some.register(descriptor, selectors.EVENT_READ)
        self._writing, self._over = threading.Lock(), threading.Lock()
        self._released = False

    @property
    def eof_received(self) -> int:
        """Whether both outputs have ended."""
        return not self._open

    @property
    def exit_status(self) -> int:
        """The exit status; ``UNKNOWN_STATUS`` while it runs, after a signal, and of what was cut off.

        A shell that is cut off reads the end of its input, and may end with 0 without having run anything.
        """
        status = self._process.poll()
        return UNKNOWN_STATUS if self.lost or status is None or status < 0 else status

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it ends within so many seconds, or is cut."""
        with suppress(subprocess.TimeoutExpired):
            if not self.closed:
                self._process.wait(timeout)
            return True
        return False

    def fileno(self) -> int:
        """What can be read when there is something to read or to notice."""
        return self._some.fileno()

    def recv_ready(self) -> bool:
        """Whether standard output has something, or has ended just now."""
        return self._ready(self._out)

    def recv_stderr_ready(self) -> bool:
        """Whether standard error has something, or has ended just now."""
        return self._ready(self._err)

    def _ready(self, descriptor: int) -> bool:
        if descriptor not in self._open:
            return False
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def recv(self, size: int, /) -> bytes:
        """What standard output has, at most ``size`` bytes."""
        return self._read(self._out, size)

    def recv_stderr(self, size: int, /) -> bytes:
        """What standard error has, at most ``size`` bytes."""
        return self._read(self._err, size)

    def _read(self, descriptor: int, size: int) -> bytes:
        data = os.read(descriptor, size)
        if not data:
            self._some.unregister(descriptor)
            self._open.remove(descriptor)
            if not self._open:
                self._notice()
        return data

    def sendall(self, data: bytes, /) -> None:
        """Write to its standard input. Raises ``BrokenPipeError`` where nobody reads it any more."""
        left = memoryview(data)
        with self._writing:
            if self._released:
                raise BrokenPipeError
            poll = select.poll()
            poll.register(self._in, select.POLLOUT)
            poll.register(self._wake, select.POLLIN)
            while left:
                poll.poll()
                if self.closed:
                    raise BrokenPipeError
                with suppress(BlockingIOError):
                    left = left[os.write(self._in, left) :]

    def shutdown_write(self) -> None:
        """Let it see the end of its standard input."""
        with self._writing:
            if self._process.stdin and not self._released:
                self._process.stdin.close()

    def cut(self) -> None:
        """Let nothing more be read or written. Any thread may do this at any time."""
        self.lost = self.closed = True
        self._notice()

    def _notice(self) -> None:
        with self._over:
            if not self._released:
                with suppress(BlockingIOError):  # a full pipe has woken them already
                    os.write(self._waker, b".")

    def close(self) -> None:
        """Let go of it. The thread that reads does this; who still writes is told."""
        self.closed = True
        self._notice()
        with self._writing, self._over:
            if self._released:
                return
            self._released = True
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream:
                    stream.close()
            self._some.close()
            os.close(self._wake)
            os.close(self._waker)
        if self._process.poll() is None:
            threading.Thread(target=self._process.wait, name="reap", daemon=True).start()


def _environment(account: pwd.struct_passwd) -> dict[str, str]:
    """That of a login, with the proxies of whoever runs Hostwright: what else they have set is for Hostwright."""
    kept = {name: os.environ[name] for name in PROXIES if name in os.environ}
    user, home = account.pw_name, account.pw_dir
    return {**kept, "HOME": home, "USER": user, "LOGNAME": user, "SHELL": account.pw_shell or "/bin/sh", "PATH": PATH}


def _home(account: pwd.struct_passwd) -> str:
    """Where a login begins."""
    return account.pw_dir if os.access(account.pw_dir, os.X_OK) else "/"


def _is_own(address: str) -> bool:
    """Whether a name or an address is one of this machine's: nothing else can be bound here."""
    with suppress(OSError, UnicodeError):
        for family, _, _, _, place in socket.getaddrinfo(address, None, type=socket.SOCK_DGRAM):
            with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.bind(place)
                return True
    return False
