"""Parameters of connections and commands (``Target``, ``Deadline``, ``Allowance``), and the result of a command
(``Output``).
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self

from hostwright.common.secret import Secret

LOCAL = "local"  #: name of the connection to the machine that runs Hostwright
TOO_MUCH = "it sent far more data than requested"  #: error text for a host that exceeded a limit
UNKNOWN_STATUS = -1  #: exit status of a command that a signal or the output limit ended


class Target(Protocol):
    """The properties of a host that the transport uses. For an empty property, ``ssh_config`` or OpenSSH's default
    applies.
    """

    @property
    def name(self) -> str:
        """The host's inventory name, for messages."""

    @property
    def connection(self) -> str:
        """``ssh``, or ``local`` for the machine that runs Hostwright."""

    @property
    def address(self) -> str | None:
        """Argument for ``ssh``: an address, a DNS name or an alias in ``ssh_config``. If empty, ``name`` is used."""

    @property
    def port(self) -> int | None:
        """TCP port of the SSH server."""

    @property
    def user(self) -> str | None:
        """Login user."""

    @property
    def key_file(self) -> str | None:
        """Private key file, tried before the keys of ``ssh_config`` and of the agent."""

    @property
    def proxy_jump(self) -> str | None:
        """Jump hosts as for ``ssh -J``: ``[user@]host[:port]``, separated by commas; ``none`` for a direct
        connection.
        """

    @property
    def password(self) -> Secret | None:
        """Login password, tried after all keys."""

    @property
    def known_hosts(self) -> str | None:
        """``known_hosts`` file that replaces the user's and the system's files."""

    @property
    def host_keys(self) -> str | None:
        """Policy for an unknown host key: ``strict`` or ``accept-new``; if empty, ``Options.host_keys`` applies."""

    @property
    def connect_timeout(self) -> float | None:
        """Time limit in seconds for connection, host key verification and authentication together."""


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command.

    ``status`` is the exit status, or ``UNKNOWN_STATUS``. ``truncated`` is whether the command was ended at the output
    limit. ``duration_s`` counts from the request of a channel to the exit status.
    """

    status: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    duration_s: float


@dataclass(frozen=True, slots=True)
class Ends:
    """The endpoints of a connection, empty if unknown.

    ``local`` is this machine's address. ``remote`` is the host's address or name; other hosts may connect to it too.
    """

    local: str = ""
    remote: str = ""

    @classmethod
    def of(cls, sock: object, address: str) -> Self:
        """Return the endpoints of a connection to ``address``.

        ``local`` is empty for a connection through a jump host or a ``ProxyCommand``.

        >>> Ends.of(None, "gpu01.rack3"), Ends.of(None, "localhost")
        (Ends(local='', remote='gpu01.rack3'), Ends(local='', remote=''))
        """
        if isinstance(sock, socket.socket) and sock.family in (socket.AF_INET, socket.AF_INET6):
            return cls(plain_address(sock.getsockname()[0]), plain_address(sock.getpeername()[0]))
        literal = plain_address(address)
        if literal:
            return cls(remote="" if ipaddress.ip_address(literal).is_loopback else literal)
        named = all(char.isalnum() or char in ".-_" for char in address) and address.isascii()
        return cls(remote=address if named and address.partition(".")[0] != "localhost" else "")


def plain_address(text: str) -> str:
    """Return the IP address ``text`` in canonical form.

    Empty for other text, and for link-local (``fe80::1``), multicast and unspecified addresses.

    >>> [plain_address(text) for text in ("::ffff:10.0.0.7", "FD00::0:5", "fe80::1%eth0", "0.0.0.0", "gpu01")]
    ['10.0.0.7', 'fd00::5', '', '', '']
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    address = getattr(address, "ipv4_mapped", None) or address
    return "" if address.is_link_local or address.is_unspecified or address.is_multicast else str(address)


class Deadline:
    """The point in time ``timeout_s`` seconds after this object was created."""

    __slots__ = ("_end", "timeout_s")

    def __init__(self, timeout_s: float):
        self.timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self._end - time.monotonic())

    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return self.left_s() == 0.0


class Allowance:
    """Limits of SSH messages and bytes that one host may send in one run, over all of its connections.

    The limits are higher while a connection is open or a command runs. Sent data and elapsed time also raise the
    limits, because the host replies to sent data and to keepalives.
    """

    #: numbers of messages and bytes that a host may send to open a connection
    CONNECTION = (2_000, 2 << 20)
    #: numbers of messages and bytes allowed for a command, in addition to the output limit
    COMMAND = (20_000, 5 << 20)
    #: assumed average number of output bytes in a message, less than real hosts send
    MESSAGE_BYTES = 256
    SENT_BYTES = 2048  #: number of bytes sent to a host that entitle the host to one window adjustment
    PER_SECOND = (2.0, 256.0)  #: numbers of messages and bytes allowed per second, for a host's replies to keepalives
    #: numbers of messages and bytes that a host may send in a whole run (the largest known output has 108 MiB)
    RUN = (3_000_000, 512 << 20)

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._lock = threading.Lock()
        self._seen_s = clock()
        #: numbers of messages and bytes granted for open connections and running commands
        self._open_messages = self._open_bytes = 0
        self._messages = self._bytes = 0.0  #: numbers of messages and bytes that the host may still send
        self._run_messages, self._run_bytes = map(float, self.RUN)
        self.fault = ""  #: error text once the host has exceeded a limit, else empty
        #: clock time of the creation; ``None`` after the first message from the host
        self._begun_s: float | None = self._seen_s

    def silent_s(self) -> float:
        """Seconds since creation of this object without any message from the host; 0 after the first message."""
        begun_s = self._begun_s
        return 0.0 if begun_s is None else self._clock() - begun_s

    @contextmanager
    def connection(self) -> Iterator[None]:
        """Raise the host's message and byte limits by ``CONNECTION`` while the block runs."""
        with self._with(*self.CONNECTION):
            yield

    @contextmanager
    def command(self, cap_bytes: int) -> Iterator[None]:
        """Raise the host's message and byte limits while a command with the output limit ``cap_bytes`` runs."""
        messages, size = self.COMMAND
        with self._with(messages + cap_bytes // self.MESSAGE_BYTES, size + cap_bytes + cap_bytes // 8):
            yield

    @contextmanager
    def _with(self, messages: int, size: int) -> Iterator[None]:
        with self._lock:
            self._open_messages += messages
            self._open_bytes += size
            self._messages += messages
            self._bytes += size
        try:
            yield
        finally:
            with self._lock:
                self._open_messages -= messages
                self._open_bytes -= size
                self._messages = min(self._messages, self._open_messages)
                self._bytes = min(self._bytes, self._open_bytes)

    def sent(self, size: int) -> None:
        """Raise the host's message and byte limits after ``size`` bytes were sent to the host."""
        with self._lock:
            self._earn(size / self.SENT_BYTES, size / self.SENT_BYTES * 16)

    def take(self, size: int, weight: int = 1) -> bool:
        """Count a received message of ``size`` bytes as ``weight`` messages.

        Return whether the host is within its limits.
        """
        with self._lock:
            self._begun_s = None
            now_s = self._clock()
            passed_s, self._seen_s = now_s - self._seen_s, now_s
            self._earn(passed_s * self.PER_SECOND[0] - weight, passed_s * self.PER_SECOND[1] - size)
            if min(self._messages, self._bytes, self._run_messages, self._run_bytes) < 0:
                self.fault = self.fault or TOO_MUCH
            return not self.fault

    def _earn(self, messages: float, size: float) -> None:
        self._messages += messages
        self._bytes += size
        self._run_messages += messages
        self._run_bytes += size
