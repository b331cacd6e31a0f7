"""Sessions on the machine that runs Hostwright (``ansible_connection: local``): each command is a process.

Commands have the environment of a login, not of the shell that started Hostwright. Each command runs in its own session
(setsid) without a terminal, so that Ctrl-C does not end jobs.
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

_PIPE_BYTES = 16 * 1024  #: minimum capacity of a pipe in bytes. A pipe has 16 KiB on macOS and 64 KiB on Linux.
_PIECE_BYTES = 64 * 1024  #: maximum number of bytes of one write. A pipe on Linux usually has this capacity.


def open_local(target: Target) -> LocalSession:
    """Open a session on this machine.

    Raises ``Unreachable`` if the address of ``target`` is not an address of this machine.
    """
    if target.address and not _is_own(target.address):
        raise Unreachable(
            target.name,
            f"ansible_connection is 'local', but ansible_host '{target.address}' is not an address of this machine; "
            "correct one of the two",
        )
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError as error:
        raise Unreachable(
            target.name, f"this machine has no account for user id {os.getuid()}; add it to /etc/passwd"
        ) from error
    return LocalSession(target, account)


class LocalSession(ChannelSession):
    """A session on this machine, as the user who runs Hostwright."""

    def __init__(self, target: Target, account: pwd.struct_passwd):
        super().__init__(target, f"{account.pw_name}@this machine")
        self._account = account
        self._running: set[Process] = set()

    def _start(self, command: str, deadline: Deadline) -> Channel:  # noqa: ARG002 - a process starts at once
        try:
            process = Process(command, self._account)
        except OSError as error:
            raise self._failure(f"/bin/sh cannot be started: {error.strerror or error}") from error
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
    """A process that runs one command, with the methods of a channel that ``Exchange`` uses.

    One thread reads, another may write, and any thread may call ``cut``.
    """

    def __init__(self, command: str, account: pwd.struct_passwd):
        self._process = subprocess.Popen(
            ("/bin/sh", "-c", command),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, env=_environment(account), cwd=_home(account), umask=0o022, start_new_session=True,
        )  # fmt: skip
        self.closed = False
        self.lost = False
        self.status_event = self
        self.out_max_packet_size = _PIECE_BYTES
        self._in, self._out, self._err = (
            stream.fileno() for stream in (self._process.stdin, self._process.stdout, self._process.stderr) if stream
        )
        self.out_window_size = _PIPE_BYTES
        os.set_blocking(self._in, False)
        self._open = {self._out, self._err}  #: file descriptors of outputs that have not ended
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._some = selectors.DefaultSelector()
        for descriptor in (*self._open, self._wake):
            self._some.register(descriptor, selectors.EVENT_READ)
        self._writing, self._over = threading.Lock(), threading.Lock()
        self._released = False

    @property
    def eof_received(self) -> int:
        """Whether standard output and error have both ended (an ``int``, as in paramiko's channel)."""
        return not self._open

    @property
    def exit_status(self) -> int:
        """The exit status, or ``UNKNOWN_STATUS`` while the process runs, after a signal and after ``cut``."""
        status = self._process.poll()
        return UNKNOWN_STATUS if self.lost or status is None or status < 0 else status

    def wait(self, timeout: float | None = None) -> bool:
        """Return whether the process ends or is cut within ``timeout`` seconds."""
        with suppress(subprocess.TimeoutExpired):
            if not self.closed:
                self._process.wait(timeout)
            return True
        return False

    def fileno(self) -> int:
        """Return a file descriptor that is readable when an output has data or has ended, and after ``cut``."""
        return self._some.fileno()

    def recv_ready(self) -> bool:
        """Whether standard output has data, or has just ended."""
        return self._ready(self._out)

    def recv_stderr_ready(self) -> bool:
        """Whether standard error has data, or has just ended."""
        return self._ready(self._err)

    def _ready(self, descriptor: int) -> bool:
        if descriptor not in self._open:
            return False
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def recv(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes of standard output."""
        return self._read(self._out, size)

    def recv_stderr(self, size: int, /) -> bytes:
        """Read at most ``size`` bytes of standard error."""
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
        """Write all of ``data`` to standard input. Raises ``BrokenPipeError`` if standard input is closed."""
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
        """Close standard input."""
        with self._writing:
            if self._process.stdin and not self._released:
                self._process.stdin.close()

    def cut(self) -> None:
        """End reading from and writing to the process, without killing it. Thread-safe."""
        self.lost = self.closed = True
        self._notice()

    def _notice(self) -> None:
        with self._over:
            if not self._released:
                with suppress(BlockingIOError):  # If the pipe is full, earlier bytes have already woken the threads.
                    os.write(self._waker, b".")

    def close(self) -> None:
        """Release the pipes. Only the reading thread may call this; a writing thread receives ``BrokenPipeError``."""
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
    kept = {name: os.environ[name] for name in PROXIES if name in os.environ}
    user, home = account.pw_name, account.pw_dir
    return {**kept, "HOME": home, "USER": user, "LOGNAME": user, "SHELL": account.pw_shell or "/bin/sh", "PATH": PATH}


def _home(account: pwd.struct_passwd) -> str:
    return account.pw_dir if os.access(account.pw_dir, os.X_OK) else "/"


def _is_own(address: str) -> bool:
    with suppress(OSError, UnicodeError):
        for family, _, _, _, place in socket.getaddrinfo(address, None, type=socket.SOCK_DGRAM):
            with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.bind(place)
                return True
    return False
