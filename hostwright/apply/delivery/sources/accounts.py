"""What is known of the hosts of a run and of its files while they are handed out: what ``FileSources`` decides by."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

CONTROLLER = ""  #: this machine, in the place of a host's name

BAD_PEER = 2  #: hosts for which a peer must fail until nobody is sent there any more
ALONE = 3  #: peers with which a host must fail, before any worked, until it is sent to none
CLOSED_PAIRS, CLOSED_HOSTS = 4, 2  #: connections, and hosts, that must fail before any works: a firewall around all


class PeerState(Enum):
    """What a host does for others."""

    ABLE = "able"  #: it could serve
    STARTING = "starting"
    SERVING = "serving"
    NONE = "none"  #: it cannot, must not, or does not any more


@dataclass(eq=False)
class Ticket:
    """A host's wish for a file. ``source`` is whence it comes, once ``settled``; ``None``: nobody decides any more."""

    host: str
    file: str
    source: str | None = None
    urgent: bool = False  #: it has waited for so long that it waits for no peer any more
    settled: threading.Event = field(default_factory=threading.Event)

    def settle(self, source: str | None) -> None:
        """Say whence the file comes."""
        self.source = source
        self.settled.set()


@dataclass(eq=False)
class HostAccount:
    """One host: its group, what it does for others, and with whom it had trouble."""

    name: str
    group: str
    uploads: int
    role: PeerState
    active: int = 0  #: uploads that are under way
    files: set[str] = field(default_factory=set)
    failed_for: set[str] = field(default_factory=set)  #: hosts that could not take a file from it
    failed_with: set[str] = field(default_factory=set)  #: hosts from which it could not take a file
    worked: bool = False  #: whether it ever took a file from a peer
    alone: bool = False  #: whether it is sent to no peer
    gone: bool = False

    @property
    def dropped(self) -> bool:
        """Whether nobody is sent to it any more."""
        return len(self.failed_for) >= BAD_PEER

    @property
    def serves(self) -> bool:
        """Whether it is, or will soon be, a source for others."""
        return self.role in (PeerState.SERVING, PeerState.STARTING) and not self.dropped

    @property
    def free(self) -> bool:
        """Whether it can take one more upload now."""
        return self.role is PeerState.SERVING and not self.dropped and self.active < self.uploads

    @property
    def may_serve(self) -> bool:
        """Whether it can become a source."""
        return self.role is not PeerState.NONE and self.uploads > 0 and not self.dropped


@dataclass(eq=False)
class PeerGroup:
    """The hosts that serve each other. ``closed``: none of them can reach another, as far as was seen."""

    refused: set[tuple[str, str]] = field(default_factory=set)
    worked: bool = False

    @property
    def closed(self) -> bool:
        """Whether nobody tries any more."""
        hosts = {host for host, _ in self.refused}
        return not self.worked and len(self.refused) >= CLOSED_PAIRS and len(hosts) >= CLOSED_HOSTS


@dataclass(eq=False)
class FileShare:
    """One file in one group. The dictionaries are ordered sets: who came first is first."""

    file: str
    group: PeerGroup
    waiting: dict[str, Ticket] = field(default_factory=dict)  #: hosts with which nothing is wrong: all are alike
    special: dict[str, Ticket] = field(default_factory=dict)  #: those that had trouble, or waited too long
    coming: dict[str, HostAccount] = field(default_factory=dict)  #: hosts that get it now, and may serve it then
    idle: dict[str, HostAccount] = field(default_factory=dict)  #: that have it and could serve
    serving: dict[str, HostAccount] = field(default_factory=dict)  #: that serve it, or are about to
    free: dict[str, HostAccount] = field(default_factory=dict)  #: those of ``serving`` that can take one more now
    copies: int = 0  #: that this machine has sent, or sends now

    @property
    def tickets(self) -> Iterator[Ticket]:
        """All that wait, those with trouble first."""
        yield from self.special.values()
        yield from self.waiting.values()

    @property
    def wanted(self) -> int:
        """How many hosts wait."""
        return len(self.waiting) + len(self.special)

    def place(self, host: HostAccount) -> None:
        """Note anew what a host that has the file does for it."""
        for place in (self.idle, self.serving, self.free):
            place.pop(host.name, None)
        if host.role is PeerState.ABLE and host.may_serve:
            self.idle[host.name] = host
        if host.serves:
            self.serving[host.name] = host
        if host.free:
            self.free[host.name] = host

    def remove(self, host: str) -> Ticket | None:
        """A host is no longer here; its ticket, if it waits."""
        for place in (self.coming, self.idle, self.serving, self.free):
            place.pop(host, None)
        return self.waiting.pop(host, None) or self.special.pop(host, None)

    def peer_for(self, host: HostAccount) -> HostAccount | None:
        """A peer that can take this host now: the one that was longest without one."""
        if host.alone or self.group.closed:
            return None
        return next((peer for name, peer in self.free.items() if name not in host.failed_with), None)

    def hope(self, host: HostAccount) -> bool:
        """Whether a peer will be able to take this host: one that is busy, does not serve yet, or is getting it."""
        if host.alone or self.group.closed:
            return False
        places = (self.serving, self.idle, self.coming)
        return any(name not in host.failed_with for place in places for name in place)
