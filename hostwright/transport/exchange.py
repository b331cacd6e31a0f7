"""What the transport takes (``Target``, ``Deadline``, ``Allowance``) and returns (``Output``)."""

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

LOCAL = "local"  #: the connection of this machine to itself
TOO_MUCH = "it sends far more than it was asked for"  #: of a host that has spent its ``Allowance``
UNKNOWN_STATUS = -1  #: the command was ended by a signal, or cut off at its output limit


class Target(Protocol):
    """The properties of a host that the transport uses. Empty values are left to ``ssh_config`` and its defaults."""

    @property
    def name(self) -> str:
        """The inventory's name, for sentences."""

    @property
    def connection(self) -> str:
        """``ssh``, or ``local`` for this machine, for which all below but ``address`` mean nothing."""

    @property
    def address(self) -> str | None:
        """The argument for ``ssh``: an address, a DNS name or an alias in ``ssh_config``; if empty, ``name``."""

    @property
    def port(self) -> int | None:
        """TCP port."""

    @property
    def user(self) -> str | None:
        """Login user."""

    @property
    def key_file(self) -> str | None:
        """Private key, tried before those of ``ssh_config`` and of the agent."""

    @property
    def proxy_jump(self) -> str | None:
        """``[user@]host[:port]``, several separated by commas, as in ``ssh -J``; ``none`` for a direct connection."""

    @property
    def password(self) -> Secret | None:
        """Login password; tried last."""

    @property
    def known_hosts(self) -> str | None:
        """The file of host keys to use instead of the user's and the system's."""

    @property
    def host_keys(self) -> str | None:
        """``strict`` or ``accept-new`` for this host; if empty, the options decide."""

    @property
    def connect_timeout(self) -> float | None:
        """Seconds for connection, host key and authentication together."""


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command.

    ``status`` is its exit status, or ``UNKNOWN_STATUS``. ``truncated`` says that it printed more than its limit and was
    cut off. ``duration_s`` counts from the request of a channel to the exit status.
    """

    status: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    duration_s: float


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a connection begins and ends: ``local`` is the address of this machine from which it goes out, ``remote``
    the address or the name by which other hosts may reach the host. Each is empty where nothing is known of it.
    """

    local: str = ""
    remote: str = ""

    @classmethod
    def of(cls, sock: object, address: str) -> Self:
        """Those of a connection to ``address``; one over a jump host or a ``ProxyCommand`` has no local end.

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
    """An IP address as everybody writes it; empty for any other text, and for one that means another machine on each
    link (``fe80::1``) or none.

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
    """A point in time, ``timeout_s`` seconds after it was made, at which waiting ends."""

    __slots__ = ("_end", "timeout_s")

    def __init__(self, timeout_s: float):
        self.timeout_s = timeout_s
        self._end = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Seconds left; never below zero."""
        return max(0.0, self._end - time.monotonic())

    def passed(self) -> bool:
        """Whether the time is over."""
        return self.left_s() == 0.0


class Allowance:
    """What one host may send in one run, over all of its connections: SSH messages, and bytes.

    A timeout bounds how long a host can keep us waiting, not how much work it makes of that time: SSH lets a server
    send messages that nobody asked for, and one byte in each. So each connection and each command comes with as much as
    an honest host needs for it many times over, and what is left at its end is taken back. What we send ourselves, and
    the time that passes, are answered by messages too, and earn some.
    """

    #: of a connection: keys, login, banner
    CONNECTION = (2_000, 2 << 20)
    #: of a command, beside its limit: signs of life, errors, what was on its way when it was cut off
    COMMAND = (20_000, 5 << 20)
    MESSAGE_BYTES = 256  #: of a command's output in a message, on average at least; sshd sends what a program writes
    SENT_BYTES = 2048  #: for so much that we send, the host may say that it has room for more
    PER_SECOND = (2.0, 256.0)  #: answers to our signs of life
    RUN = (3_000_000, 512 << 20)  #: of a run; the logs of nine layers have 108 MiB at most

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._lock = threading.Lock()
        self._seen_s = clock()
        self._open_messages = self._open_bytes = 0  #: what came with the connections and commands that have not ended
        self._messages = self._bytes = 0.0  #: what is left of that
        self._run_messages, self._run_bytes = map(float, self.RUN)
        self.fault = ""  #: why the host is not listened to any more
        self._begun_s: float | None = self._seen_s  #: until the first message

    def silent_s(self) -> float:
        """How many seconds have passed since this was made, if not one message has come; else 0."""
        begun_s = self._begun_s
        return 0.0 if begun_s is None else self._clock() - begun_s

    @contextmanager
    def connection(self) -> Iterator[None]:
        """What comes with a connection, for as long as it is open."""
        with self._with(*self.CONNECTION):
            yield

    @contextmanager
    def command(self, cap_bytes: int) -> Iterator[None]:
        """What comes with a command whose output has this limit, until it has ended."""
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
        """So many bytes were sent to the host that it had room for."""
        with self._lock:
            self._earn(size / self.SENT_BYTES, size / self.SENT_BYTES * 16)

    def take(self, size: int, weight: int = 1) -> bool:
        """A message of ``size`` bytes has come, as much work as ``weight`` of them; whether the host may go on."""
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
