"""Fleets that take files from each other, with a clock of their own: what ``FileSources`` decides, to its end."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from hostwright.apply.delivery.sources.sources import CONTROLLER, FileSources, Peer, SourceLimits, Ticket

START_S = 0.1  #: until a host serves
TRANSFER_S = 10.0
REFUSED_S = 3.0  #: until a connection is given up


@dataclass
class Fleet:
    """Hosts that want files. ``trouble`` says what comes of a transfer: nothing is good."""

    peers: Mapping[str, Peer]
    files: tuple[str, ...] = ("cuda",)
    trouble: Callable[[str, str], str] = lambda host, source: ""
    begins: Mapping[str, float] = field(default_factory=dict)  #: when a host asks; those that are not named: at once
    stays_s: float = 1e6  #: how long a host works on after it has all of its files, and serves
    takes: Callable[[str, str], float] = lambda host, source: TRANSFER_S
    serves: Callable[[str], bool] = lambda host: True  #: whether its server comes up
    has: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_once: int = 16
    now_s: float = 0.0
    rounds: float = 0.0  #: when the last host had its last file
    copies: Counter[str] = field(default_factory=Counter)  #: whole ones of this machine
    tries: Counter[tuple[str, str]] = field(default_factory=Counter)  #: by host and source
    waited_s: dict[tuple[str, str], float] = field(default_factory=dict)
    most: Counter[str] = field(default_factory=Counter)  #: uploads at a time
    got: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._open: list[Ticket] = []
        self._active: Counter[str] = Counter()
        self.sources = FileSources(self.peers, self._begin, SourceLimits(at_once=self.at_once))

    def at(self, after_s: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now_s + after_s, next(self._number), what))

    def play(self, until_s: float = 1e9) -> Fleet:
        """To the end, or to a time; every host that has not left has every file then."""
        for host in self.peers:
            self.at(self.begins.get(host, 0.0), lambda host=host: self._arrive(host))
        while self._events and self._events[0][0] <= until_s:
            self.now_s, _, what = heapq.heappop(self._events)
            what()
            self._move()
        return self

    def _begin(self, host: str) -> None:
        self.at(START_S, lambda: (self.sources.serving if self.serves(host) else self.sources.unable)(host))

    def _arrive(self, host: str) -> None:
        for file in self.has.get(host, ()):
            self.sources.has(host, file)
            self.got.add((host, file))
        self._next(host)

    def _next(self, host: str) -> None:
        """One file after the other, as a host fetches them."""
        missing = [file for file in self.files if (host, file) not in self.got]
        if missing:
            self._ask(host, missing[0])
        else:
            self.rounds = self.now_s
            self.at(self.stays_s, lambda: self.sources.leave(host))

    def _ask(self, host: str, file: str) -> None:
        self.waited_s.setdefault((host, file), -self.now_s)
        self._open.append(self.sources.ask(host, file))

    def _move(self) -> None:
        settled = [ticket for ticket in self._open if ticket.settled.is_set()]
        self._open = [ticket for ticket in self._open if not ticket.settled.is_set()]
        for ticket in settled:
            if ticket.source is None:
                continue
            self.tries[ticket.host, ticket.source] += 1
            self._active[ticket.source] += 1
            self.most[ticket.source] = max(self.most[ticket.source], self._active[ticket.source])
            wrong = self.trouble(ticket.host, ticket.source)
            seconds = REFUSED_S if wrong == "connect" else self.takes(ticket.host, ticket.source)
            self.at(seconds, lambda ticket=ticket, wrong=wrong: self._end(ticket, wrong))

    def _end(self, ticket: Ticket, wrong: str) -> None:
        self._active[str(ticket.source)] -= 1
        if wrong:
            self.sources.failed(ticket, connect=wrong == "connect")
            self._ask(ticket.host, ticket.file)
            return
        if ticket.source == CONTROLLER:
            self.copies[ticket.file] += 1
        key = (ticket.host, ticket.file)
        self.got.add(key)
        self.waited_s[key] += self.now_s
        self.sources.done(ticket)
        self._next(ticket.host)

    @property
    def complete(self) -> bool:
        """Whether every host has every file."""
        return self.got >= {(host, file) for host in self.peers for file in self.files}


def hosts(number: int, group: str = "", uploads: int = 2) -> dict[str, Peer]:
    return {f"{group}gpu{index:04}": Peer(group, uploads) for index in range(number)}
