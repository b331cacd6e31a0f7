"""Decides from where each host of a run gets each file. It opens no connection and starts no thread.

The controller (this machine) sends a file to a few hosts of a group, and those hand it on: with three copies of ours
and two uploads of each, 3, 9, 27, 81, … hosts have it after one more transfer each. Hosts are served in the order in
which they asked. A peer that fails is avoided first by the host for which it failed, then by all; where no peer works,
the controller sends to all hosts, a bounded number at a time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

CONTROLLER = ""  #: this machine, in the place of a host's name

#: Copies of a file that the controller sends to a group as long as peers work; our choice. Each takes its share of our
#: network, and then each host hands it on to two others in the time of two: so three are quicker than four for up to 27
#: hosts, and a tenth slower for a hundred.
COPIES = 3
AT_ONCE = 16  #: copies of any files that the controller sends at a time
MOST_SERVING = 64  #: hosts that serve at a time: each keeps a channel of its connection busy
UPLOADS = 2  #: that a host makes at a time, unless its inventory sets another number
PATIENCE_S = 600.0  #: our choice: a host that waited so long for a peer gets the file from the controller

BAD_PEER = 2  #: hosts for which a peer must fail until no host is sent to it any more
ALONE = 3  #: peers with which a host must fail, before any worked, until it is sent to none
CLOSED_PAIRS, CLOSED_HOSTS = 4, 2  #: connections, and hosts, that must fail before any works: a firewall around all


@dataclass(frozen=True, slots=True)
class Peer:
    """A host as others see it: the group in which files are shared, and how many uploads it makes at a time."""

    group: str = ""
    uploads: int = UPLOADS


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """How much at a time: copies of a file for a group, copies of all files, and hosts that serve."""

    copies: int = COPIES
    at_once: int = AT_ONCE
    serving: int = MOST_SERVING


@dataclass(eq=False)
class Ticket:
    """A host's request for a file. Once ``settled``, ``source`` is where the file comes from; ``None``: nowhere."""

    host: str
    file: str
    source: str | None = None
    urgent: bool = False  #: it waited long enough, and need not wait for a peer
    settled: threading.Event = field(default_factory=threading.Event)

    def settle(self, source: str | None) -> None:
        """Set the source, and wake who waits."""
        self.source = source
        self.settled.set()


class PeerState(Enum):
    """The state of a host as a source of files for other hosts."""

    ABLE = "able"  #: it could serve
    STARTING = "starting"
    SERVING = "serving"
    NONE = "none"  #: it cannot, must not, or does not any more


@dataclass(eq=False)
class _Group:
    """Hosts that serve each other."""

    refused: set[tuple[str, str]] = field(default_factory=set)  #: connections between two of them that failed
    worked: bool = False

    @property
    def closed(self) -> bool:
        """Whether no host can reach another, as far as was seen."""
        hosts = {host for host, _ in self.refused}
        return not self.worked and len(self.refused) >= CLOSED_PAIRS and len(hosts) >= CLOSED_HOSTS


@dataclass(eq=False)
class _Account:
    """One host: what it does for others, and with which hosts it had trouble."""

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
    def may_serve(self) -> bool:
        """Whether it is, or can become, a source."""
        return self.role is not PeerState.NONE and self.uploads > 0 and len(self.failed_for) < BAD_PEER

    @property
    def free(self) -> bool:
        """Whether it can take one more upload now."""
        return self.role is PeerState.SERVING and self.may_serve and self.active < self.uploads


@dataclass(eq=False)
class _Share:
    """One file in one group. The dictionaries are ordered sets: the host that was added first comes first."""

    file: str
    group: _Group
    waiting: dict[str, Ticket] = field(default_factory=dict)  #: hosts without trouble: what one gets, each would
    special: dict[str, Ticket] = field(default_factory=dict)  #: hosts that had trouble, or waited too long
    coming: dict[str, _Account] = field(default_factory=dict)  #: hosts that get it now, and may serve it then
    idle: dict[str, _Account] = field(default_factory=dict)  #: that have it and could serve
    serving: dict[str, _Account] = field(default_factory=dict)  #: that serve it, or are about to
    copies: int = 0  #: that the controller has sent, or sends now

    @property
    def wanted(self) -> int:
        """How many hosts wait."""
        return len(self.waiting) + len(self.special)

    def place(self, account: _Account) -> None:
        """Sort in a host that has the file, behind the others."""
        self.idle.pop(account.name, None)
        self.serving.pop(account.name, None)
        if account.may_serve:
            (self.idle if account.role is PeerState.ABLE else self.serving)[account.name] = account

    def forget(self, host: str) -> Ticket | None:
        """Remove a host; its ticket, if it waited."""
        for place in (self.coming, self.idle, self.serving):
            place.pop(host, None)
        return self.waiting.pop(host, None) or self.special.pop(host, None)

    def free(self) -> Iterator[_Account]:
        """Peers that can take a host now, the one that was longest without one first."""
        return (peer for peer in self.serving.values() if peer.free)

    def hope(self, account: _Account) -> bool:
        """Whether a peer will be able to take this host: one that is busy, does not serve yet, or is getting it."""
        if account.alone or self.group.closed:
            return False
        places = (self.serving, self.idle, self.coming)
        return any(name not in account.failed_with for place in places for name in place)


_LIMITS = SourceLimits()


class FileSources:
    """Decides for the hosts of a run. Callable from any thread; each method returns at once.

    ``peers`` are the hosts that take and hand on files. ``begin`` is called, outside the lock, with the name of a host
    that shall serve from now on: the answer is ``serving`` or ``unable``.
    """

    def __init__(self, peers: Mapping[str, Peer], begin: Callable[[str], None], limits: SourceLimits = _LIMITS):
        self._begin, self._limits = begin, limits
        self._lock = threading.Lock()  # guards the fields below
        self._groups = {peer.group: _Group() for peer in peers.values()}
        self._hosts = {
            name: _Account(name, peer.group, peer.uploads, PeerState.ABLE if peer.uploads else PeerState.NONE)
            for name, peer in peers.items()
        }
        self._shares: dict[tuple[str, str], _Share] = {}
        self._stopped = False
        self._sending = self._serving = 0  #: copies that the controller sends now; hosts that serve

    def join(self, host: str) -> None:
        """The run begins to work on the host; what it had before is unknown."""
        account = self._hosts[host]
        with self._lock:
            account.gone = False
            account.files.clear()
        self.able(host)

    def ask(self, host: str, file: str) -> Ticket:
        """Request a file that the host does not have. Wait for ``ticket.settled``, then call ``done``, ``failed`` or
        ``ended`` for each ticket that has a source."""
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
        """The host has the file."""
        account = self._hosts[ticket.host]
        with self._deciding() as changed:
            if ticket.source:
                account.worked = self._groups[account.group].worked = True
            changed.extend(self._release(ticket, kept=True))
            changed.append(self._add(account, ticket.file))

    def failed(self, ticket: Ticket, *, connect: bool = False) -> None:
        """The source did not give the file; ``connect``: it could not even be reached."""
        with self._deciding() as changed:
            changed.extend(self._release(ticket, kept=False))
            if ticket.source:
                changed.extend(self._blame(self._hosts[ticket.host], self._hosts[ticket.source], connect=connect))

    def ended(self, ticket: Ticket) -> None:
        """The transfer ended in a way for which its source cannot be blamed."""
        with self._deciding() as changed:
            changed.extend(self._release(ticket, kept=False))

    def blame(self, host: str, peers: Iterable[str]) -> None:
        """These peers gave parts of a file that turned out to be wrong."""
        with self._lock:
            for peer in set(peers):
                self._blame(self._hosts[host], self._hosts[peer], connect=False)

    def has(self, host: str, file: str) -> None:
        """The host had the file already."""
        account = self._hosts[host]
        with self._deciding() as changed:
            if not account.gone:
                changed.append(self._add(account, file))

    def serving(self, host: str) -> None:
        """The host serves what it has from now on."""
        self._become(host, PeerState.SERVING)

    def unable(self, host: str) -> None:
        """The host serves nothing, or nothing any more."""
        self._become(host, PeerState.NONE)

    def able(self, host: str) -> None:
        """The host could serve again: it was ``unable`` for a while."""
        if self._hosts[host].uploads:
            self._become(host, PeerState.ABLE)

    def alone(self, host: str) -> None:
        """The host cannot take files from any peer."""
        with self._lock:
            self._leave_alone(self._hosts[host])

    def hurry(self, ticket: Ticket) -> None:
        """This ticket waited long enough (``PATIENCE_S``): it need not wait for peers any more."""
        with self._deciding() as changed:
            if not ticket.settled.is_set():
                ticket.urgent = True
                share = self._share(self._hosts[ticket.host], ticket.file)
                share.waiting.pop(ticket.host, None)
                share.special[ticket.host] = ticket
                changed.append(share)

    def cancel(self, ticket: Ticket) -> None:
        """The host does not need the file any more; where it has a source already, it calls ``ended``."""
        with self._lock:
            share = self._share(self._hosts[ticket.host], ticket.file)
            for place in (share.waiting, share.special):
                if place.get(ticket.host) is ticket:
                    del place[ticket.host]
                    ticket.settle(None)

    def leave(self, host: str) -> None:
        """The run on this host is over: it neither takes nor gives files any more."""
        account = self._hosts[host]
        with self._deciding() as changed:
            self._turn(account, PeerState.NONE)
            account.gone = True
            changed.extend(share for (group, _), share in self._shares.items() if group == account.group)
            for share in changed:
                if ticket := share.forget(host):
                    ticket.settle(None)

    def stop(self) -> None:
        """Give no host anything new, and wake all that wait."""
        with self._lock:
            self._stopped = True
            for share in self._shares.values():
                for ticket in (*share.special.values(), *share.waiting.values()):
                    ticket.settle(None)
                share.waiting.clear()
                share.special.clear()

    def needed(self, host: str) -> bool:
        """Whether others take files from this host now, or wait for one that it serves."""
        account = self._hosts[host]
        with self._lock:
            if account.active:
                return True
            serves = account.may_serve and account.role is not PeerState.ABLE
            return serves and any(self._share(account, file).wanted for file in account.files)

    @contextmanager
    def _deciding(self) -> Iterator[list[_Share]]:
        """Change accounts under the lock, then give sources to the hosts that wait in the shares that were listed."""
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
        """The host has a file."""
        account.files.add(file)
        share = self._share(account, file)
        if not account.gone:
            share.place(account)
        return share

    def _replace(self, account: _Account) -> list[_Share]:
        """Sort a host in anew, for each of its files; their shares."""
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
        """Set what a host does for others, and count those that serve."""
        active = (PeerState.STARTING, PeerState.SERVING)
        self._serving += (role in active) - (account.role in active)
        account.role = role

    def _release(self, ticket: Ticket, *, kept: bool) -> list[_Share]:
        """A transfer is over: its source is free for another one. The shares that may use that."""
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
        """A peer failed for a host; the shares for which that matters."""
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
        """The fault is this host's own: no peer is blamed for it."""
        account.alone = True
        for name in account.failed_with:
            self._hosts[name].failed_for.discard(account.name)
            self._replace(self._hosts[name])

    def _match(self, share: _Share) -> None:
        """Give sources to the hosts that wait for a file, as far as there are some."""
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
        """Hosts that have the file and do not serve yet, as many as the waiting ones can use."""
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
