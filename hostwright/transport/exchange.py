"""What the transport takes (``Target``, ``Deadline``) and returns (``Output``)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from hostwright.common.secret import Secret

LOCAL = "local"  #: the connection of this machine to itself
UNKNOWN_STATUS = -1  #: the command was ended by a signal, or cut off at its output limit


class Target(Protocol):
    """The properties of a host that the transport uses. Empty values are left to ``ssh_config`` and its defaults."""

    @property
    def name(self) -> str:
        """The inventory's name, for sentences."""
        ...

    @property
    def connection(self) -> str:
        """``ssh``, or ``local`` for this machine, for which all below but ``address`` mean nothing."""
        ...

    @property
    def address(self) -> str | None:
        """The argument for ``ssh``: an address, a DNS name or an alias in ``ssh_config``; if empty, ``name``."""
        ...

    @property
    def port(self) -> int | None:
        """TCP port."""
        ...

    @property
    def user(self) -> str | None:
        """Login user."""
        ...

    @property
    def key_file(self) -> str | None:
        """Private key, tried before those of ``ssh_config`` and of the agent."""
        ...

    @property
    def proxy_jump(self) -> str | None:
        """``[user@]host[:port]``, several separated by commas, as in ``ssh -J``; ``none`` for a direct connection."""
        ...

    @property
    def password(self) -> Secret | None:
        """Login password; tried last."""
        ...

    @property
    def known_hosts(self) -> str | None:
        """The file of host keys to use instead of the user's and the system's."""
        ...

    @property
    def host_keys(self) -> str | None:
        """``strict`` or ``accept-new`` for this host; if empty, the options decide."""
        ...

    @property
    def connect_timeout(self) -> float | None:
        """Seconds for connection, host key and authentication together."""
        ...


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
