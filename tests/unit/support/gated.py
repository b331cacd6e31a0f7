"""Hosts whose work ends when a test decides, and a rollout over them in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue

from hostwright.apply import events
from hostwright.apply.events import HostEnded
from hostwright.apply.executors.executor import HostExecutor
from hostwright.apply.rollout.limits import Limits
from hostwright.apply.rollout.rollout import Results, roll_out

WAIT_S = 60  #: for events that occur at once unless the code is broken
NAMES = tuple(f"gpu{number:02}" for number in range(12))


def nothing() -> None:
    """Do nothing."""


@dataclass
class Hosts:
    """Hosts whose work ends at the time and with the result that the test sets."""

    begun: SimpleQueue[str] = field(default_factory=SimpleQueue)
    seen: list[events.Event] = field(default_factory=list)
    told: SimpleQueue[str] = field(default_factory=SimpleQueue)
    in_work: set[str] = field(default_factory=set)
    most: int = 0
    _gates: dict[str, SimpleQueue[Exception | None]] = field(default_factory=lambda: {n: SimpleQueue() for n in NAMES})
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, name: str) -> str:
        with self._lock:
            self.in_work.add(name)
            self.most = max(self.most, len(self.in_work))
        self.begun.put(name)
        error = self._gates[name].get(timeout=WAIT_S)
        with self._lock:
            self.in_work.remove(name)
        if error is not None:
            raise error
        return name

    def end(self, name: str, error: Exception | None = None) -> None:
        self._gates[name].put(error)

    def take(self, event: events.Event) -> None:
        self.seen.append(event)
        self.told.put(event.host)

    def next(self, number: int) -> set[str]:
        """Wait for the next ``number`` hosts to begin; return them."""
        return {self.begun.get(timeout=WAIT_S) for _ in range(number)}

    @property
    def ended(self) -> list[tuple[str, str]]:
        return [(event.host, event.result) for event in self.seen if isinstance(event, HostEnded)]


@dataclass
class Aside:
    """A rollout in its own thread, so that the test can act as the hosts and the operator."""

    hosts: Hosts
    limits: Limits
    names: Sequence[str] = NAMES
    silent: set[str] = field(default_factory=set)
    executor: HostExecutor | None = None
    results: Results[str] | None = None
    error: BaseException | None = None
    stops: int = 0

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.results = roll_out(
                self.names,
                self.hosts.work,
                limits=self.limits,
                emit=self.hosts.take,
                stop=self._stop,
                on_interrupt=nothing,
                silent=lambda: frozenset(self.silent),
                executor=self.executor,
            )
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    def _stop(self) -> None:
        self.stops += 1

    def join(self) -> Results[str]:
        self.thread.join(WAIT_S)
        assert self.results is not None
        return self.results
