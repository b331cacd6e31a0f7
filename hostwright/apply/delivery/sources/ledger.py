"""The rules by which ``FileSources`` gives hosts their sources; it holds the lock, and this the accounts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hostwright.apply.delivery.sources.accounts import (
    ALONE,
    CONTROLLER,
    FileShare,
    HostAccount,
    PeerGroup,
    PeerState,
    Ticket,
)

#: Of a file that this machine sends to a group as long as peers work; our choice. Each takes its share of our network,
#: and then each host hands it on to two others in the time of two: so three are quicker than four for up to 27 hosts,
#: and a tenth slower for a hundred.
COPIES = 3
AT_ONCE = 16  #: copies of any files that this machine sends at a time
MOST_SERVING = 64  #: hosts that serve at a time: each keeps a channel of its connection busy
UPLOADS = 2  #: that a host makes at a time, unless its inventory says another number


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


class Ledger:
    """The accounts of all hosts and files of a run. Not thread-safe."""

    def __init__(self, peers: Mapping[str, Peer], limits: SourceLimits):
        self._limits = limits
        self.groups = {peer.group: PeerGroup() for peer in peers.values()}
        self.hosts = {
            name: HostAccount(name, peer.group, peer.uploads, PeerState.ABLE if peer.uploads else PeerState.NONE)
            for name, peer in peers.items()
        }
        self.shares: dict[tuple[str, str], FileShare] = {}
        self.stopped = False  #: whether nobody gets anything new
        self._sending = self._serving = 0

    def share(self, account: HostAccount, file: str) -> FileShare:
        """A file in the group of a host."""
        group = account.group
        return self.shares.setdefault((group, file), FileShare(file, self.groups[group]))

    def turn(self, account: HostAccount, role: PeerState) -> None:
        """A host does something else for others; those that serve are counted."""
        active = (PeerState.STARTING, PeerState.SERVING)
        self._serving += (role in active) - (account.role in active)
        account.role = role

    def take(self, account: HostAccount, file: str) -> None:
        """The host has a file."""
        account.files.add(file)
        if not account.gone:
            self.share(account, file).place(account)

    def replace(self, account: HostAccount) -> list[FileShare]:
        """Note anew what a host does for each of its files; their shares."""
        shares = [self.share(account, file) for file in account.files]
        for share in shares:
            share.place(account)
        return shares

    def release(self, ticket: Ticket, *, kept: bool) -> list[FileShare]:
        """A transfer is over: its source is free for another one. The shares that may use that."""
        account = self.hosts[ticket.host]
        share = self.share(account, ticket.file)
        share.coming.pop(ticket.host, None)
        if ticket.source == CONTROLLER:
            self._sending -= 1
            share.copies -= not kept
            return [share, *(other for other in self.shares.values() if other.wanted)]
        peer = self.hosts[str(ticket.source)]
        peer.active -= 1
        return [share, *(self.replace(peer) if not peer.gone else ())]

    def blame(self, account: HostAccount, peer: HostAccount, *, connect: bool) -> list[FileShare]:
        """A peer failed for a host; the shares for which that matters."""
        if account.alone:
            return []
        account.failed_with.add(peer.name)
        peer.failed_for.add(account.name)
        if connect:
            self.groups[account.group].refused.add((account.name, peer.name))
        if not account.worked and len(account.failed_with) >= ALONE:
            self.leave_alone(account)
        return self.replace(peer) if not peer.gone else []

    def leave_alone(self, account: HostAccount) -> None:
        """The fault is this host's own: nobody else is blamed for it."""
        account.alone = True
        for name in account.failed_with:
            peer = self.hosts[name]
            peer.failed_for.discard(account.name)
            if not peer.gone:
                self.replace(peer)

    def match(self, shares: Iterable[FileShare]) -> list[str]:
        """Give sources to those who wait; the hosts that shall begin to serve."""
        begin: list[str] = []
        if self.stopped:
            return begin
        for share in dict.fromkeys(shares):
            for ticket in list(share.special.values()):
                if not share.free and self._sending >= self._limits.at_once:
                    break
                self._assign(share, ticket)
            while share.waiting and self._assign(share, next(iter(share.waiting.values()))):
                pass
            begin += self._wake(share)
        return begin

    def _assign(self, share: FileShare, ticket: Ticket) -> bool:
        account = self.hosts[ticket.host]
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
            peer = self.hosts[source]
            peer.active += 1
            self.replace(peer)  # which puts it behind the others
        ticket.settle(source)
        return True

    def _choose(self, share: FileShare, ticket: Ticket, account: HostAccount) -> str | None:
        peer = share.peer_for(account)
        if peer is not None:
            return peer.name
        due = share.copies < self._limits.copies or ticket.urgent or not share.hope(account)
        return CONTROLLER if due and self._sending < self._limits.at_once else None

    def _wake(self, share: FileShare) -> list[str]:
        """Hosts that have the file and do not serve yet, as many as those who wait can use."""
        begin: list[str] = []
        if share.group.closed:
            return begin
        starting = sum(peer.role is PeerState.STARTING for peer in share.serving.values())
        for peer in list(share.idle.values()):
            enough = len(begin) + starting >= math.ceil(share.wanted / peer.uploads)
            if enough or self._serving >= self._limits.serving:
                break
            self.turn(peer, PeerState.STARTING)
            self.replace(peer)
            begin.append(peer.name)
        return begin
