"""Chooses the source of each file for each host of a run. This module opens no connection and starts no thread.

The controller (this machine) sends a file to a few hosts of a group, which then serve the file to others. With three
copies from the controller and two uploads of each host, every round of transfers triples the number of hosts that have
the file.

A peer (a host that serves files) that fails is avoided first by the host for which it failed, then by all hosts. If no
peer works, the controller sends to all hosts, a limited number at a time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

CONTROLLER = ""  #: source name that stands for this machine instead of a host

#: maximum number of copies of a file that the controller sends to one group (our choice). Three copies are faster than
#: four for up to 27 hosts, and 10 % slower for 100 hosts.
COPIES = 3
AT_ONCE = 16  #: maximum number of simultaneous transfers of files from the controller
MOST_SERVING = 64  #: maximum number of hosts that serve files at the same time
UPLOADS = 2  #: default maximum number of simultaneous uploads from one host to other hosts
PATIENCE_S = 600.0  #: maximum seconds that a host waits for a free peer instead of the controller (our choice)

BAD_PEER = 2  #: number of hosts that fail to fetch from a peer before the peer is no longer a source
ALONE = 3  #: number of peers that fail for a host, without any success, before the host uses no peers
#: minimum numbers of failed connections and of affected hosts that indicate a firewall between hosts
CLOSED_PAIRS, CLOSED_HOSTS = 4, 2


@dataclass(frozen=True, slots=True)
class Peer:
    """A host as a source of files, with the group of hosts that it may serve and the number of simultaneous uploads."""

    group: str = ""
    uploads: int = UPLOADS


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """The limits of file distribution: copies of one file per group, transfers from this machine, and hosts that serve
    files.
    """

    copies: int = COPIES
    at_once: int = AT_ONCE
    serving: int = MOST_SERVING


@dataclass(eq=False)
class Ticket:
    """The request of ``host`` for the file with the sha256 ``file``.

    ``source`` is valid once ``settled`` is set: the source of the file, or ``None`` if the host gets no source.
    """

    host: str
    file: str
    source: str | None = None
    urgent: bool = False  #: whether the host has waited for ``PATIENCE_S``
    settled: threading.Event = field(default_factory=threading.Event)

    def settle(self, source: str | None) -> None:
        """Set the source of the file, and wake the thread that waits for the source."""
        self.source = source
        self.settled.set()


class PeerState(Enum):
    """The state of a host as a source of files for other hosts of the run."""

    ABLE = "able"  #: state of a host whose file server can be started when another host needs a file
    STARTING = "starting"
    SERVING = "serving"
    NONE = "none"  #: state of a host that cannot serve, must not serve, or has stopped


@dataclass(eq=False)
class _Group:
    refused: set[tuple[str, str]] = field(default_factory=set)  #: pairs of hosts between which a connection failed
    worked: bool = False

    @property
    def closed(self) -> bool:
        hosts = {host for host, _ in self.refused}
        return not self.worked and len(self.refused) >= CLOSED_PAIRS and len(hosts) >= CLOSED_HOSTS


@dataclass(eq=False)
class _Account:
    name: str
    group: str
    uploads: int
    role: PeerState
    active: int = 0  #: number of uploads in progress from this host
    files: set[str] = field(default_factory=set)
    failed_for: set[str] = field(default_factory=set)  #: hosts that could not fetch a file from this host
    failed_with: set[str] = field(default_factory=set)  #: hosts from which this host could not fetch a file
    worked: bool = False  #: whether this host ever fetched a file from a peer
    alone: bool = False  #: whether this host must not use peers as sources
    gone: bool = False

    @property
    def may_serve(self) -> bool:
        return self.role is not PeerState.NONE and self.uploads > 0 and len(self.failed_for) < BAD_PEER

    @property
    def free(self) -> bool:
        return self.role is PeerState.SERVING and self.may_serve and self.active < self.uploads


@dataclass(eq=False)
class _Share:
    file: str
    group: _Group
    #: requests of hosts without failed transfers; any source can serve these requests
    waiting: dict[str, Ticket] = field(default_factory=dict)
    #: requests of hosts that have failed transfers, or have waited for ``PATIENCE_S``
    special: dict[str, Ticket] = field(default_factory=dict)
    coming: dict[str, _Account] = field(default_factory=dict)  #: hosts that are receiving the file
    idle: dict[str, _Account] = field(default_factory=dict)  #: hosts that have the file and could serve it
    serving: dict[str, _Account] = field(default_factory=dict)  #: hosts that serve the file, or are starting to do so
    copies: int = 0  #: number of copies that the controller has sent or is sending to the group

    @property
    def wanted(self) -> int:
        return len(self.waiting) + len(self.special)

    def place(self, account: _Account) -> None:
        self.idle.pop(account.name, None)
        self.serving.pop(account.name, None)
        if account.may_serve:
            (self.idle if account.role is PeerState.ABLE else self.serving)[account.name] = account

    def forget(self, host: str) -> Ticket | None:
        for place in (self.coming, self.idle, self.serving):
            place.pop(host, None)
        return self.waiting.pop(host, None) or self.special.pop(host, None)

    def free(self) -> Iterator[_Account]:
        return (peer for peer in self.serving.values() if peer.free)

    def hope(self, account: _Account) -> bool:
        if account.alone or self.group.closed:
            return False
        places = (self.serving, self.idle, self.coming)
        return any(name not in account.failed_with for place in places for name in place)


_LIMITS = SourceLimits()


class FileSources:
    """Chooses the sources of files for the hosts of a run. Thread-safe; no method blocks.

    ``peers`` are the hosts that fetch and serve files. If a host must start to serve files, ``begin(host)`` is called
    outside the lock; ``begin`` then calls ``serving`` or ``unable``.
    """

    def __init__(self, peers: Mapping[str, Peer], begin: Callable[[str], None], limits: SourceLimits = _LIMITS):
        self._begin, self._limits = begin, limits
        self._lock = threading.Lock()  # This lock guards the fields below.
        self._groups = {peer.group: _Group() for peer in peers.values()}
        self._hosts = {
            name: _Account(name, peer.group, peer.uploads, PeerState.ABLE if peer.uploads else PeerState.NONE)
            for name, peer in peers.items()
        }
        self._shares: dict[tuple[str, str], _Share] = {}
        self._stopped = False
        #: number of copies that the controller is sending, and number of hosts that serve files
        self._sending = self._serving = 0

    def join(self, host: str) -> None:
        """Add ``host``, without any files, at the start of the run's work on the host."""
        account = self._hosts[host]
        with self._lock:
            account.gone = False
            account.files.clear()
        self.able(host)

    def ask(self, host: str, file: str) -> Ticket:
        """Request the file with the sha256 ``file``, which ``host`` lacks.

        Wait for ``settled`` of the returned ticket. If the ticket has a source, then call ``done``, ``failed`` or
        ``ended``.
        """
        ticket, account = Ticket(host, file), self._hosts[host]
        with self._deciding() as changed:
            if self._stopped or account.gone:
                ticket.settle(None)
                return ticket
            share = self._share(account, file)
            (share.special if account.failed_with or account.alone else share.waiting)[host] = ticket
            changed.append(share)
        return ticket

    def done(self, ticket: Ticket) -> None:
        """Record that the host of ``ticket`` has received the file."""
        account = self._hosts[ticket.host]
        with self._deciding() as changed:
            if ticket.source:
                account.worked = self._groups[account.group].worked = True
            changed.extend(self._release(ticket, kept=True))
            changed.append(self._add(account, ticket.file))

    def failed(self, ticket: Ticket, *, connect: bool = False) -> None:
        """Record that the source of ``ticket`` failed.

        ``connect`` means that the host could not connect to the source.
        """
        with self._deciding() as changed:
            changed.extend(self._release(ticket, kept=False))
            if ticket.source:
                changed.extend(self._blame(self._hosts[ticket.host], self._hosts[ticket.source], connect=connect))

    def ended(self, ticket: Ticket) -> None:
        """Record that the transfer for ``ticket`` ended early, and that the source was not the cause."""
        with self._deciding() as changed:
            changed.extend(self._release(ticket, kept=False))

    def blame(self, host: str, peers: Iterable[str]) -> None:
        """Record that ``peers`` sent ``host`` parts of a file that has a wrong checksum."""
        with self._lock:
            for peer in set(peers):
                self._blame(self._hosts[host], self._hosts[peer], connect=False)

    def has(self, host: str, file: str) -> None:
        """Record that ``host`` already had ``file`` when the run checked the host."""
        account = self._hosts[host]
        with self._deciding() as changed:
            if not account.gone:
                changed.append(self._add(account, file))

    def serving(self, host: str) -> None:
        """Record that the file server on ``host`` has started."""
        self._become(host, PeerState.SERVING)

    def unable(self, host: str) -> None:
        """Record that the file server on ``host`` cannot start, or has stopped."""
        self._become(host, PeerState.NONE)

    def able(self, host: str) -> None:
        """Record that ``host``, after ``unable``, can serve files again."""
        if self._hosts[host].uploads:
            self._become(host, PeerState.ABLE)

    def alone(self, host: str) -> None:
        """Record that ``host`` cannot fetch files from any other host."""
        with self._lock:
            self._leave_alone(self._hosts[host])

    def hurry(self, ticket: Ticket) -> None:
        """Let any source serve ``ticket``, after the host of the ticket has waited for ``PATIENCE_S``."""
        with self._deciding() as changed:
            if not ticket.settled.is_set():
                ticket.urgent = True
                share = self._share(self._hosts[ticket.host], ticket.file)
                share.waiting.pop(ticket.host, None)
                share.special[ticket.host] = ticket
                changed.append(share)

    def cancel(self, ticket: Ticket) -> None:
        """Withdraw the request ``ticket``. If the ticket already has a source, the host must call ``ended``."""
        with self._lock:
            share = self._share(self._hosts[ticket.host], ticket.file)
            for place in (share.waiting, share.special):
                if place.get(ticket.host) is ticket:
                    del place[ticket.host]
                    ticket.settle(None)

    def leave(self, host: str) -> None:
        """Remove ``host`` at the end of the run's work on the host."""
        account = self._hosts[host]
        with self._deciding() as changed:
            self._turn(account, PeerState.NONE)
            account.gone = True
            changed.extend(share for (group, _), share in self._shares.items() if group == account.group)
            for share in changed:
                if ticket := share.forget(host):
                    ticket.settle(None)

    def stop(self) -> None:
        """Assign no further sources, and wake all hosts that wait for a source."""
        with self._lock:
            self._stopped = True
            for share in self._shares.values():
                for ticket in (*share.special.values(), *share.waiting.values()):
                    ticket.settle(None)
                share.waiting.clear()
                share.special.clear()

    def needed(self, host: str) -> bool:
        """Return whether other hosts are fetching files from ``host``, or wait for a file that ``host`` serves."""
        account = self._hosts[host]
        with self._lock:
            if account.active:
                return True
            serves = account.may_serve and account.role is not PeerState.ABLE
            return serves and any(self._share(account, file).wanted for file in account.files)

    @contextmanager
    def _deciding(self) -> Iterator[list[_Share]]:
        """Hold the lock while the caller adds shares (each a file in a group of hosts) to the yielded list. Then assign
        sources to the hosts that wait for these files.
        """
        changed: list[_Share] = []
        begin: list[str] = []
        with self._lock:
            yield changed
            if not self._stopped:
                for share in dict.fromkeys(changed):
                    self._match(share)
                    begin += self._wake(share)
        for host in begin:
            self._begin(host)

    def _share(self, account: _Account, file: str) -> _Share:
        return self._shares.setdefault((account.group, file), _Share(file, self._groups[account.group]))

    def _add(self, account: _Account, file: str) -> _Share:
        account.files.add(file)
        share = self._share(account, file)
        if not account.gone:
            share.place(account)
        return share

    def _replace(self, account: _Account) -> list[_Share]:
        shares = [] if account.gone else [self._share(account, file) for file in account.files]
        for share in shares:
            share.place(account)
        return shares

    def _become(self, host: str, role: PeerState) -> None:
        account = self._hosts[host]
        with self._deciding() as changed:
            if not account.gone:
                self._turn(account, role)
                changed.extend(self._replace(account))

    def _turn(self, account: _Account, role: PeerState) -> None:
        active = (PeerState.STARTING, PeerState.SERVING)
        self._serving += (role in active) - (account.role in active)
        account.role = role

    def _release(self, ticket: Ticket, *, kept: bool) -> list[_Share]:
        share = self._share(self._hosts[ticket.host], ticket.file)
        share.coming.pop(ticket.host, None)
        if ticket.source == CONTROLLER:
            self._sending -= 1
            share.copies -= not kept
            return [share, *(other for other in self._shares.values() if other.wanted)]
        peer = self._hosts[str(ticket.source)]
        peer.active -= 1
        return [share, *self._replace(peer)]

    def _blame(self, account: _Account, peer: _Account, *, connect: bool) -> list[_Share]:
        if account.alone:
            return []
        account.failed_with.add(peer.name)
        peer.failed_for.add(account.name)
        if connect:
            self._groups[account.group].refused.add((account.name, peer.name))
        if not account.worked and len(account.failed_with) >= ALONE:
            self._leave_alone(account)
        return self._replace(peer)

    def _leave_alone(self, account: _Account) -> None:
        """Assign no other host as a source to this host. Failures of this host no longer count against other hosts."""
        account.alone = True
        for name in account.failed_with:
            self._hosts[name].failed_for.discard(account.name)
            self._replace(self._hosts[name])

    def _match(self, share: _Share) -> None:
        for ticket in list(share.special.values()):
            if self._sending >= self._limits.at_once and not any(share.free()):
                break
            self._assign(share, ticket)
        while share.waiting and self._assign(share, next(iter(share.waiting.values()))):
            pass

    def _assign(self, share: _Share, ticket: Ticket) -> bool:
        account = self._hosts[ticket.host]
        source = self._choose(share, ticket, account)
        if source is None:
            return False
        share.waiting.pop(ticket.host, None)
        share.special.pop(ticket.host, None)
        if account.may_serve:
            share.coming[ticket.host] = account
        if source == CONTROLLER:
            self._sending += 1
            share.copies += 1
        else:
            self._hosts[source].active += 1
            self._replace(self._hosts[source])
        ticket.settle(source)
        return True

    def _choose(self, share: _Share, ticket: Ticket, account: _Account) -> str | None:
        if not (account.alone or share.group.closed):
            for peer in share.free():
                if peer.name not in account.failed_with:
                    return peer.name
        if self._sending >= self._limits.at_once:
            return None
        due = share.copies < self._limits.copies or ticket.urgent or not share.hope(account)
        return CONTROLLER if due else None

    def _wake(self, share: _Share) -> list[str]:
        begin: list[str] = []
        if share.group.closed:
            return begin
        starting = sum(peer.role is PeerState.STARTING for peer in share.serving.values())
        for peer in list(share.idle.values()):
            enough = len(begin) + starting >= math.ceil(share.wanted / peer.uploads)
            if enough or self._serving >= self._limits.serving:
                break
            self._turn(peer, PeerState.STARTING)
            self._replace(peer)
            begin.append(peer.name)
        return begin
