"""Which worker has which host of a run, and what is to come of what workers say. Nothing here talks to a cluster.

A host is at one worker at a time. The worker that asked last has it: where the cluster gives a host to another, because
it lost the first, the first must leave, and nothing that it says is listened to any more. What it had done counts.
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

AGAIN = 3  #: our choice: how often a host is given away anew whose worker let go of it; as often as Dask by itself
LET_GO = "%d workers let go of it one after the other, the last of them %s; a job that runs on it goes on: run again"
LOST = (
    "%d workers were lost while they had it, the last of them %s: their logs say why; a job that runs on it goes on: "
    "run again"
)
NOT_TLS = "the worker %s is not connected by TLS, and passwords are sent to no such worker"


@dataclass
class Trip:
    """One host on its way: where it is, and what was done before by workers that were lost."""

    host: str
    future: Future[Outcome]
    send: Callable[[], None]  #: gives the host to the cluster, again and again
    texts: tuple[str, ...] = field(default=(), repr=False)  #: of the secrets that it takes
    keep: Callable[[], str] = lambda: ""  #: keeps its stack for the way back; a sentence where it cannot
    worker: str = ""  #: its address
    name: str = ""
    mailbox: bytes = b""
    attempt: str = ""
    number: int = 0  #: of the last message that was recorded
    given: frozenset[str] = frozenset()  #: the workers that it was given to: one of them has it, or will
    sent: int = 0  #: how often it was sent to the cluster
    taken: bool = False  #: by one of the workers that it was given to
    times: int = 0  #: that workers lost it or let go of it
    plan: Plan | None = None  #: the first one
    results: tuple[RoleResult, ...] = ()  #: of this attempt
    reboots: int = 0
    before: tuple[tuple[RoleResult, ...], int] = ((), 0)  #: results and reboots of attempts that were lost
    jobs: dict[str, str] = field(default_factory=dict)  #: of each role that was begun, the job
    ended: frozenset[str] = frozenset()  #: jobs whose end was told
    was_lost: bool = False  #: with a worker that had it

    @property
    def go(self) -> Go:
        """That its attempt may begin."""
        told = self.number > 1  # what it asked is the first message
        return Go(b"" if told else letter(self.texts, self.mailbox), self.ended if self.was_lost else None)

    def note(self, event: Event) -> None:
        """Take in what happened, for when this worker is lost."""
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
        """Its worker is lost: what was done until now was done before."""
        done, reboots = self.before
        self.before = ((*done, *self.results), reboots + self.reboots)
        self.results, self.reboots, self.was_lost = (), 0, True

    def whole(self, outcome: Outcome) -> Outcome:
        """What came of the host, with what lost workers had done."""
        done, reboots = self.before
        return replace(
            outcome,
            plan=(self.plan if done or reboots else None) or outcome.plan,
            results=(*done, *outcome.results),
            reboots=reboots + outcome.reboots,
        )


class Dispatch:
    """The hosts of one run that were given to a cluster.

    One thread does all that is done here, but for ``add``, ``word`` and ``heard``; from it, ``emit`` hears
    all that happens to hosts. ``speak`` is called with a worker to whom there is something to say. ``recover`` returns
    what is kept at the place of a lost worker of these attempts, beyond these numbers.
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
        """A host that is given to the cluster now."""
        with self._lock:
            self._trips[trip.host] = trip

    def word(self, worker: str) -> Word:
        """How the run stands, for one worker."""
        with self._lock:
            going = {trip.attempt: trip.go for trip in self._trips.values() if trip.worker == worker}
            return Word(self._stopping(), going, frozenset(self._leave.get(worker, ())))

    def sent(self, host: str, workers: Iterable[str]) -> int:
        """A host was sent to the cluster, for one of these workers; the number of that task."""
        with self._lock:
            if (trip := self._trips.get(host)) is None:
                return 0
            trip.given, trip.sent, trip.taken = frozenset(workers), trip.sent + 1, False
            return trip.sent

    def is_current(self, host: str, sent: int) -> bool:
        """Whether the task with this number is the last one that was sent of a host."""
        with self._lock:
            return (trip := self._trips.get(host)) is not None and trip.sent == sent

    def heard(self, worker: str, word: Word) -> None:
        """A worker has heard this word."""
        with self._lock:
            self._leave.get(worker, set()).difference_update(word.leave)

    def take(self, message: Message) -> None:
        """What a worker says."""
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
        """The cluster's task for a host is over. Where the host is not, its worker let go of it: another goes on."""
        trip = self._trip(host)
        if trip is None:
            return
        if error is not None:
            self._end(trip, error)
        else:
            self._give_again(trip, LET_GO)

    def strand(self, workers: Collection[str]) -> None:
        """Give hosts to others where all workers are gone that they were given to: these workers are there.

        That counts for hosts that such a worker had taken: one of those may be what ends workers. Where none was taken,
        it counts for each, so that no host is given away for ever.
        """
        stranded = [trip for trip in self._left() if trip.given and trip.given.isdisjoint(workers)]
        nobody = not any(trip.taken for trip in stranded)
        for trip in stranded:
            self._give_again(trip, LOST, counts=trip.taken or nobody)

    def lose(self, because: str, then: str) -> None:
        """Nobody is left who could work: every host ends as it is."""
        for trip in self._left():
            self._end(trip, CrewLost(trip.host, because, then))

    def cut(self) -> None:
        """Every worker lets go of its hosts at once; every host has ended here."""
        for trip in self._left():
            self._dismiss(trip.worker, trip.attempt)
            self._end(trip, Stopped(trip.host, CUT))

    def fail(self, error: BaseException) -> None:
        """Every host ends with an error of this machine."""
        for trip in self._left():
            self._end(trip, error)

    def known(self) -> dict[str, int]:
        """The number of the last message that was heard of each attempt."""
        with self._lock:
            return {trip.attempt: trip.number for trip in self._trips.values() if trip.attempt}

    def _give_again(self, trip: Trip, why: str, *, counts: bool = True) -> None:
        """Give a host to the workers that are there now, unless too many had it."""
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
        """Its worker was lost: what it could not tell any more is looked for, and it must leave where it lives."""
        for message in self._recover(trip.worker, {trip.attempt: trip.number}):
            if message.attempt == trip.attempt and isinstance(message.body, Reported):
                self._hear(trip, message)
        self._dismiss(trip.worker, trip.attempt)
        trip.lose()
        # with its witness: who reads the journal knows that there was this attempt, also where nothing came of it
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
