"""Who gets a file from whom, for all hosts of a run: one place that decides, and touches nothing.

This machine sends a file to a few hosts of a group, and those hand it on: with three copies of ours and two uploads
of each, 3, 9, 27, 81, … hosts have it after one more transfer each. Hosts wait in the order in which they asked. Peers
that fail are avoided, first by the host for which they failed, then by all; where no peer works, this machine sends to
all, to so many at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from hostwright.apply.delivery.sources.accounts import PeerState, Ticket
from hostwright.apply.delivery.sources.ledger import Ledger, Peer, SourceLimits

PATIENCE_S = 600.0  #: our choice: who has waited so long for a peer gets the file from this machine


_LIMITS = SourceLimits()


class FileSources:
    """Decides for the hosts of a run. Callable from any thread; each method returns at once.

    ``peers`` are the hosts that take and hand on files. ``begin`` is called, outside the lock, with the name of a host
    that shall serve from now on: the answer is ``serving`` or ``unable``.
    """

    def __init__(self, peers: Mapping[str, Peer], begin: Callable[[str], None], limits: SourceLimits = _LIMITS):
        self._ledger, self._begin = Ledger(peers, limits), begin
        self._lock = threading.Lock()

    def join(self, host: str) -> None:
        """The run begins to work on the host; what it had before is not known any more."""
        account = self._ledger.hosts[host]
        with self._lock:
            account.gone = False
            account.files.clear()
        self.able(host)

    def ask(self, host: str, file: str) -> Ticket:
        """A host wants a file that it does not have. Wait for ``ticket.settled``, and say ``done``, ``failed`` or
        ``ended`` of each ticket that has a source."""
        ticket = Ticket(host, file)
        account = self._ledger.hosts[host]
        with self._lock:
            if self._ledger.stopped or account.gone:
                ticket.settle(None)
                return ticket
            share = self._ledger.share(account, file)
            (share.special if account.failed_with or account.alone else share.waiting)[host] = ticket
            begin = self._ledger.match([share])
        self._start(begin)
        return ticket

    def done(self, ticket: Ticket) -> None:
        """The host has the file."""
        with self._lock:
            account = self._ledger.hosts[ticket.host]
            if ticket.source:
                account.worked = self._ledger.groups[account.group].worked = True
            shares = self._ledger.release(ticket, kept=True)
            self._ledger.take(account, ticket.file)
            begin = self._ledger.match([*shares, self._ledger.share(account, ticket.file)])
        self._start(begin)

    def failed(self, ticket: Ticket, *, connect: bool = False) -> None:
        """The source did not give the file; ``connect``: it could not even be reached."""
        with self._lock:
            shares = self._ledger.release(ticket, kept=False)
            if ticket.source:
                shares += self._ledger.blame(
                    self._ledger.hosts[ticket.host], self._ledger.hosts[ticket.source], connect=connect
                )
            begin = self._ledger.match(shares)
        self._start(begin)

    def blame(self, host: str, peers: Iterable[str]) -> None:
        """These peers gave parts of what turned out to be wrong."""
        with self._lock:
            for peer in set(peers):
                self._ledger.blame(self._ledger.hosts[host], self._ledger.hosts[peer], connect=False)

    def ended(self, ticket: Ticket) -> None:
        """The transfer ended in a way for which its source cannot be blamed."""
        with self._lock:
            begin = self._ledger.match(self._ledger.release(ticket, kept=False))
        self._start(begin)

    def has(self, host: str, file: str) -> None:
        """The host had the file already."""
        account = self._ledger.hosts[host]
        with self._lock:
            if account.gone:
                return
            self._ledger.take(account, file)
            begin = self._ledger.match([self._ledger.share(account, file)])
        self._start(begin)

    def serving(self, host: str) -> None:
        """The host serves what it has from now on."""
        self._become(host, PeerState.SERVING)

    def unable(self, host: str) -> None:
        """The host serves nothing, or nothing any more."""
        self._become(host, PeerState.NONE)

    def alone(self, host: str) -> None:
        """The host cannot take files from others, whoever they are."""
        with self._lock:
            self._ledger.leave_alone(self._ledger.hosts[host])

    def able(self, host: str) -> None:
        """The host could serve again: it was ``unable`` for a while."""
        if self._ledger.hosts[host].uploads:
            self._become(host, PeerState.ABLE)

    def hurry(self, ticket: Ticket) -> None:
        """This one has waited long enough (``PATIENCE_S``): it need not wait for peers any more."""
        with self._lock:
            share = self._ledger.share(self._ledger.hosts[ticket.host], ticket.file)
            if ticket.settled.is_set():
                return
            ticket.urgent = True
            share.waiting.pop(ticket.host, None)
            share.special[ticket.host] = ticket
            begin = self._ledger.match([share])
        self._start(begin)

    def cancel(self, ticket: Ticket) -> None:
        """The host does not want the file any more; where it has a source already, it says ``ended``."""
        with self._lock:
            share = self._ledger.share(self._ledger.hosts[ticket.host], ticket.file)
            for place in (share.waiting, share.special):
                if place.get(ticket.host) is ticket:
                    del place[ticket.host]
                    ticket.settle(None)

    def leave(self, host: str) -> None:
        """The run on this host is over: it neither takes nor gives any more."""
        account = self._ledger.hosts[host]
        with self._lock:
            self._ledger.turn(account, PeerState.NONE)
            account.gone = True
            shares = [share for (group, _), share in self._ledger.shares.items() if group == account.group]
            for share in shares:
                if ticket := share.remove(host):
                    ticket.settle(None)
            begin = self._ledger.match(shares)
        self._start(begin)

    def stop(self) -> None:
        """Nobody gets anything new any more; who waits is told."""
        with self._lock:
            self._ledger.stopped = True
            for share in self._ledger.shares.values():
                for ticket in share.tickets:
                    ticket.settle(None)
                share.waiting.clear()
                share.special.clear()

    def needed(self, host: str) -> bool:
        """Whether others take files from this host now, or wait for one that it serves."""
        account = self._ledger.hosts[host]
        with self._lock:
            if account.active:
                return True
            shares = (self._ledger.share(account, file) for file in account.files)
            return account.serves and any(share.wanted for share in shares)

    def _start(self, begin: list[str]) -> None:
        for host in begin:
            self._begin(host)

    def _become(self, host: str, role: PeerState) -> None:
        account = self._ledger.hosts[host]
        with self._lock:
            if account.gone:
                return
            self._ledger.turn(account, role)
            begin = self._ledger.match(self._ledger.replace(account))
        self._start(begin)
