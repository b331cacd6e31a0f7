"""Decides which worker has which host of a run, and handles what workers send. Nothing here talks to a cluster.

A host is at one worker at a time: at the one that asked last. Where the cluster lost a worker and gives its host to
another, the first must leave, and its messages are ignored from then on. What it had done counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from hostwright.apply import events
from hostwright.apply.events import Emit, Event, HostEnded, Note, Witness
from hostwright.apply.executors.cluster.client import TLS
from hostwright.apply.executors.cluster.errand import Done, Go, Knock, Message, Reported, Word
from hostwright.apply.executors.cluster.sealing import letter
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.rollout.connections import CUT
from hostwright.common.errors import CrewLost, HostError, Stopped
from hostwright.plan.model import Plan, RoleResult

AGAIN = 3  #: our choice: how often a host is sent again after its worker let go of it; as often as Dask by itself
LET_GO = "%d workers let go of it one after the other, the last of them %s; a job that runs on it goes on: run again"
LOST = (
    "%d workers were lost while they had it, the last of them %s: their logs say why; a job that runs on it goes on: "
    "run again"
)
NOT_TLS = "the worker %s is not connected by TLS, and passwords are sent to no such worker"


@dataclass
class Trip:
    """One host: which worker has it, and what workers did before they were lost."""

    host: str
    future: Future[Outcome]
    send: Callable[[], None]  #: sends the host to the cluster; may be called again
    texts: tuple[str, ...] = field(default=(), repr=False)  #: of the secrets that it takes
    keep: Callable[[], str] = lambda: ""  #: keeps its stack for a rollback; a sentence if it cannot
    worker: str = ""  #: its address
    name: str = ""
    mailbox: bytes = b""
    attempt: str = ""
    number: int = 0  #: of the last message that was recorded
    given: frozenset[str] = frozenset()  #: the workers that it was sent to: one of them has it, or will
    sent: int = 0  #: how often it was sent to the cluster
    taken: bool = False  #: by one of the workers that it was sent to
    times: int = 0  #: that workers lost it or let go of it
    plan: Plan | None = None  #: the first one
    results: tuple[RoleResult, ...] = ()  #: of this attempt
    reboots: int = 0
    before: tuple[tuple[RoleResult, ...], int] = ((), 0)  #: results and reboots of attempts that were lost
    jobs: dict[str, str] = field(default_factory=dict)  #: by role, the job that was begun
    ended: frozenset[str] = frozenset()  #: jobs whose end was reported
    was_lost: bool = False  #: with a worker that had it

    @property
    def go(self) -> Go:
        """Permission for its attempt to begin."""
        begun = self.number > 1  # its question is the first message
        return Go(b"" if begun else letter(self.texts, self.mailbox), self.ended if self.was_lost else None)

    def note(self, event: Event) -> None:
        """Remember an event, in case this worker is lost."""
        match event:
            case events.Observed(plan=plan):
                self.plan = self.plan or plan
            case events.RoleStarted(role=role, job=job) | events.Attached(role=role, job=job):
                self.jobs[role] = job
            case events.RoleFinished(role=role, result=result):
                self.results = (*self.results, result)
                self.ended |= {self.jobs.pop(role, "")}
            case events.Rebooted():
                self.reboots += 1

    def lose(self) -> None:
        """Its worker is lost: count what was done until now as done before."""
        done, reboots = self.before
        self.before = ((*done, *self.results), reboots + self.reboots)
        self.results, self.reboots, self.was_lost = (), 0, True

    def whole(self, outcome: Outcome) -> Outcome:
        """The outcome with what lost workers had done."""
        done, reboots = self.before
        return replace(
            outcome,
            plan=(self.plan if done or reboots else None) or outcome.plan,
            results=(*done, *outcome.results),
            reboots=reboots + outcome.reboots,
        )


class Dispatch:
    """The hosts of one run that were sent to a cluster.

    One thread calls all methods but ``add``, ``word`` and ``heard``; in it, ``emit`` gets every event of a host.
    ``speak`` is called with a worker for which there is a new word. ``recover`` returns what is kept on the machine of
    a lost worker of these attempts, beyond these numbers.
    """

    def __init__(
        self,
        emit: Emit,
        speak: Callable[[str], None],
        *,
        stopping: Callable[[], bool] = lambda: False,
        recover: Callable[[str, Mapping[str, int]], Iterable[Message]] = lambda _worker, _known: (),
    ):
        self._emit, self._speak, self._stopping, self._recover = emit, speak, stopping, recover
        self._lock = threading.Lock()  # guards the fields below
        self._trips: dict[str, Trip] = {}  #: hosts that have not ended
        self._leave: dict[str, set[str]] = {}

    def add(self, trip: Trip) -> None:
        """Add a host that is sent to the cluster."""
        with self._lock:
            self._trips[trip.host] = trip

    def word(self, worker: str) -> Word:
        """How the run stands, for one worker."""
        with self._lock:
            going = {trip.attempt: trip.go for trip in self._trips.values() if trip.worker == worker}
            return Word(self._stopping(), going, frozenset(self._leave.get(worker, ())))

    def sent(self, host: str, workers: Iterable[str]) -> int:
        """Record that a host was sent to the cluster, for one of these workers; the number of that task."""
        with self._lock:
            if (trip := self._trips.get(host)) is None:
                return 0
            trip.given, trip.sent, trip.taken = frozenset(workers), trip.sent + 1, False
            return trip.sent

    def is_current(self, host: str, sent: int) -> bool:
        """Whether the task with this number is the last one that was sent for a host."""
        with self._lock:
            return (trip := self._trips.get(host)) is not None and trip.sent == sent

    def heard(self, worker: str, word: Word) -> None:
        """A worker has received this word."""
        with self._lock:
            self._leave.get(worker, set()).difference_update(word.leave)

    def take(self, message: Message) -> None:
        """Handle a message of a worker."""
        trip = self._trip(message.host)
        if trip is None:
            self._dismiss(message.worker, message.attempt)
        elif isinstance(message.body, Knock):
            self._begin(trip, message, message.body)
        elif message.attempt != trip.attempt:
            self._dismiss(message.worker, message.attempt)
        else:
            self._hear(trip, message)

    def task_ended(self, host: str, error: BaseException | None) -> None:
        """The cluster's task for a host is over. If the host has not ended, its worker let go of it: send it again."""
        trip = self._trip(host)
        if trip is None:
            return
        if error is not None:
            self._end(trip, error)
        else:
            self._give_again(trip, LET_GO)

    def strand(self, workers: Collection[str]) -> None:
        """Send hosts again if all workers that they were sent to are gone; ``workers`` are those that are there.

        It counts against a host that such a worker had taken: this host may be what ends workers. If none was taken, it
        counts against each, so that no host is sent for ever.
        """
        stranded = [trip for trip in self._left() if trip.given and trip.given.isdisjoint(workers)]
        nobody = not any(trip.taken for trip in stranded)
        for trip in stranded:
            self._give_again(trip, LOST, counts=trip.taken or nobody)

    def lose(self, because: str, then: str) -> None:
        """No worker is left: every host ends as it is."""
        for trip in self._left():
            self._end(trip, CrewLost(trip.host, because, then))

    def cut(self) -> None:
        """Have every worker let go of its hosts at once; every host ends here."""
        for trip in self._left():
            self._dismiss(trip.worker, trip.attempt)
            self._end(trip, Stopped(trip.host, CUT))

    def fail(self, error: BaseException) -> None:
        """End every host with an error of this machine."""
        for trip in self._left():
            self._end(trip, error)

    def known(self) -> dict[str, int]:
        """By attempt, the number of the last message that was received."""
        with self._lock:
            return {trip.attempt: trip.number for trip in self._trips.values() if trip.attempt}

    def _give_again(self, trip: Trip, why: str, *, counts: bool = True) -> None:
        """Send a host to the workers that are there now, unless too many had it."""
        trip.times += counts
        if trip.times > AGAIN:
            self._end(trip, HostError(trip.host, why % (trip.times, trip.name or "unknown")))
        else:
            trip.send()

    def _trip(self, host: str) -> Trip | None:
        """A host that has not ended."""
        with self._lock:
            return self._trips.get(host)

    def _left(self) -> tuple[Trip, ...]:
        with self._lock:
            return tuple(self._trips.values())

    def _dismiss(self, worker: str, attempt: str) -> None:
        if not worker:
            return
        with self._lock:
            self._leave.setdefault(worker, set()).add(attempt)
        self._speak(worker)

    def _begin(self, trip: Trip, message: Message, asked: Knock) -> None:
        if trip.texts and not message.worker.startswith(TLS):
            self._dismiss(message.worker, message.attempt)
            self._end(trip, HostError(trip.host, NOT_TLS % asked.worker))
            return
        if trip.attempt and trip.attempt != message.attempt:
            self._lose(trip, asked.worker)
        with self._lock:
            trip.worker, trip.name, trip.mailbox = message.worker, asked.worker, asked.mailbox
            trip.attempt, trip.number, trip.taken = message.attempt, message.number, True
        self._speak(message.worker)

    def _lose(self, trip: Trip, successor: str) -> None:
        """Its worker was lost: recover what it could not send any more, and have it leave if it is alive after all."""
        for message in self._recover(trip.worker, {trip.attempt: trip.number}):
            if message.attempt == trip.attempt and isinstance(message.body, Reported):
                self._hear(trip, message)
        self._dismiss(trip.worker, trip.attempt)
        trip.lose()
        # with its witness, so that the journal has this attempt also if it reported nothing
        witness = Witness(trip.worker, trip.attempt, 0)
        self._emit(Note(trip.host, f"its worker {trip.name} was lost; {successor} goes on with it", witness=witness))

    def _hear(self, trip: Trip, message: Message) -> None:
        if message.number:
            if message.number <= trip.number:
                return  # it was recovered before
            with self._lock:
                trip.number = message.number
        witness = Witness(message.worker, message.attempt, message.number)
        match message.body:
            case Reported(event=event):
                trip.note(event)
                self._emit(replace(event, witness=witness))
            case Done(outcome=outcome, error=error) if outcome is not None:
                self._finish(trip, trip.whole(outcome), witness)
            case Done(error=error) if error is not None:
                self._end(trip, error)

    def _finish(self, trip: Trip, outcome: Outcome, witness: Witness) -> None:
        if outcome.word != "pending" and (trouble := trip.keep()):
            self._emit(Note(trip.host, trouble))
        self._emit(HostEnded(trip.host, outcome.word, witness=witness))
        self._forget(trip)
        trip.future.set_result(outcome)

    def _end(self, trip: Trip, error: BaseException) -> None:
        self._forget(trip)
        trip.future.set_exception(error)

    def _forget(self, trip: Trip) -> None:
        with self._lock:
            self._trips.pop(trip.host, None)
