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
from hostwright.apply.events import Event, EventOrigin, HostEnded, Note
from hostwright.apply.executors.cluster.client import TLS
from hostwright.apply.executors.cluster.messages import Claim, Done, Go, Heartbeat, Message, Reported
from hostwright.apply.executors.cluster.sealing import encrypted_for
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.rollout.connections import CUT
from hostwright.apply.run import Run
from hostwright.common.errors import ExecutorLost, HostError, Stopped
from hostwright.plan.model import Plan, RoleResult

AGAIN = 3  #: our choice: how often a host is sent again after its worker let go of it; as often as Dask by itself
LET_GO = "%d workers let go of it one after the other, the last of them %s; a job that runs on it goes on: run again"
LOST = (
    "%d workers were lost while they had it, the last of them %s: their logs say why; a job that runs on it goes on: "
    "run again"
)
NOT_TLS = "the worker %s is not connected by TLS, and passwords are sent to no such worker"


@dataclass
class HostAssignment:
    """One host: which worker has it, and what workers did before they were lost."""

    host: str
    future: Future[Outcome]
    send: Callable[[], None]  #: sends the host to the cluster; may be called again
    texts: tuple[str, ...] = field(default=(), repr=False)  #: of the secrets that it takes
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
        return Go(b"" if begun else encrypted_for(self.texts, self.mailbox), self.ended if self.was_lost else None)

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

    One thread calls all methods but ``add``, ``heartbeat`` and ``heard``; in it, the run gets every event of a host.
    ``speak`` is called with a worker for which there is a new heartbeat. ``recover`` returns what is kept on the
    machine of a lost worker of these attempts, beyond these numbers.
    """

    def __init__(
        self,
        run: Run,
        speak: Callable[[str], None],
        *,
        recover: Callable[[str, Mapping[str, int]], Iterable[Message]] = lambda _worker, _known: (),
    ):
        self._run, self._emit, self._speak, self._recover = run, run.emit, speak, recover
        self._lock = threading.Lock()  # guards the fields below
        self._assignments: dict[str, HostAssignment] = {}  #: hosts that have not ended
        self._leave: dict[str, set[str]] = {}

    def add(self, assignment: HostAssignment) -> None:
        """Add a host that is sent to the cluster."""
        with self._lock:
            self._assignments[assignment.host] = assignment

    def heartbeat(self, worker: str) -> Heartbeat:
        """How the run stands, for one worker."""
        with self._lock:
            going = {
                assignment.attempt: assignment.go
                for assignment in self._assignments.values()
                if assignment.worker == worker
            }
            return Heartbeat(self._run.stopping.is_set(), going, frozenset(self._leave.get(worker, ())))

    def sent(self, host: str, workers: Iterable[str]) -> int:
        """Record that a host was sent to the cluster, for one of these workers; the number of that task."""
        with self._lock:
            if (assignment := self._assignments.get(host)) is None:
                return 0
            assignment.given, assignment.sent, assignment.taken = frozenset(workers), assignment.sent + 1, False
            return assignment.sent

    def is_current(self, host: str, sent: int) -> bool:
        """Whether the task with this number is the last one that was sent for a host."""
        with self._lock:
            return (assignment := self._assignments.get(host)) is not None and assignment.sent == sent

    def heard(self, worker: str, heartbeat: Heartbeat) -> None:
        """A worker has received this heartbeat."""
        with self._lock:
            self._leave.get(worker, set()).difference_update(heartbeat.leave)

    def take(self, message: Message) -> None:
        """Handle a message of a worker."""
        assignment = self._assignment(message.host)
        if assignment is None:
            self._dismiss(message.worker, message.attempt)
        elif isinstance(message.body, Claim):
            self._begin(assignment, message, message.body)
        elif message.attempt != assignment.attempt:
            self._dismiss(message.worker, message.attempt)
        else:
            self._hear(assignment, message)

    def task_ended(self, host: str, error: BaseException | None) -> None:
        """The cluster's task for a host is over. If the host has not ended, its worker let go of it: send it again."""
        assignment = self._assignment(host)
        if assignment is None:
            return
        if error is not None:
            self._end(assignment, error)
        else:
            self._give_again(assignment, LET_GO)

    def strand(self, workers: Collection[str]) -> None:
        """Send hosts again if all workers that they were sent to are gone; ``workers`` are those that are there.

        It counts against a host that such a worker had taken: this host may be what ends workers. If none was taken, it
        counts against each, so that no host is sent for ever.
        """
        stranded = [
            assignment for assignment in self._left() if assignment.given and assignment.given.isdisjoint(workers)
        ]
        nobody = not any(assignment.taken for assignment in stranded)
        for assignment in stranded:
            self._give_again(assignment, LOST, counts=assignment.taken or nobody)

    def lose(self, because: str, then: str) -> None:
        """No worker is left: every host ends as it is."""
        for assignment in self._left():
            self._end(assignment, ExecutorLost(assignment.host, because, then))

    def cut(self) -> None:
        """Have every worker let go of its hosts at once; every host ends here."""
        for assignment in self._left():
            self._dismiss(assignment.worker, assignment.attempt)
            self._end(assignment, Stopped(assignment.host, CUT))

    def fail(self, error: BaseException) -> None:
        """End every host with an error of this machine."""
        for assignment in self._left():
            self._end(assignment, error)

    def known(self) -> dict[str, int]:
        """By attempt, the number of the last message that was received."""
        with self._lock:
            return {
                assignment.attempt: assignment.number for assignment in self._assignments.values() if assignment.attempt
            }

    def _give_again(self, assignment: HostAssignment, why: str, *, counts: bool = True) -> None:
        """Send a host to the workers that are there now, unless too many had it."""
        assignment.times += counts
        if assignment.times > AGAIN:
            self._end(assignment, HostError(assignment.host, why % (assignment.times, assignment.name or "unknown")))
        else:
            assignment.send()

    def _assignment(self, host: str) -> HostAssignment | None:
        """A host that has not ended."""
        with self._lock:
            return self._assignments.get(host)

    def _left(self) -> tuple[HostAssignment, ...]:
        with self._lock:
            return tuple(self._assignments.values())

    def _dismiss(self, worker: str, attempt: str) -> None:
        if not worker:
            return
        with self._lock:
            self._leave.setdefault(worker, set()).add(attempt)
        self._speak(worker)

    def _begin(self, assignment: HostAssignment, message: Message, asked: Claim) -> None:
        if assignment.texts and not message.worker.startswith(TLS):
            self._dismiss(message.worker, message.attempt)
            self._end(assignment, HostError(assignment.host, NOT_TLS % asked.worker))
            return
        if assignment.attempt and assignment.attempt != message.attempt:
            self._lose(assignment, asked.worker)
        with self._lock:
            assignment.worker, assignment.name, assignment.mailbox = message.worker, asked.worker, asked.mailbox
            assignment.attempt, assignment.number, assignment.taken = message.attempt, message.number, True
        self._speak(message.worker)

    def _lose(self, assignment: HostAssignment, successor: str) -> None:
        """Its worker was lost: recover what it could not send any more, and have it leave if it is alive after all."""
        for message in self._recover(assignment.worker, {assignment.attempt: assignment.number}):
            if message.attempt == assignment.attempt and isinstance(message.body, Reported):
                self._hear(assignment, message)
        self._dismiss(assignment.worker, assignment.attempt)
        assignment.lose()
        # with its origin, so that the journal has this attempt also if it reported nothing
        origin = EventOrigin(assignment.worker, assignment.attempt, 0)
        self._emit(
            Note(assignment.host, f"its worker {assignment.name} was lost; {successor} goes on with it", origin=origin)
        )

    def _hear(self, assignment: HostAssignment, message: Message) -> None:
        if message.number:
            if message.number <= assignment.number:
                return  # it was recovered before
            with self._lock:
                assignment.number = message.number
        origin = EventOrigin(message.worker, message.attempt, message.number)
        match message.body:
            case Reported(event=event):
                assignment.note(event)
                self._emit(replace(event, origin=origin))
            case Done(outcome=outcome, error=error) if outcome is not None:
                self._finish(assignment, assignment.whole(outcome), origin)
            case Done(error=error) if error is not None:
                self._end(assignment, error)

    def _finish(self, assignment: HostAssignment, outcome: Outcome, origin: EventOrigin) -> None:
        stack = self._run.targets.by_name[assignment.host].stack
        if outcome.word != "pending" and (trouble := self._run.keep(stack)):
            self._emit(Note(assignment.host, trouble))
        self._emit(HostEnded(assignment.host, outcome.word, origin=origin))
        self._forget(assignment)
        assignment.future.set_result(outcome)

    def _end(self, assignment: HostAssignment, error: BaseException) -> None:
        self._forget(assignment)
        assignment.future.set_exception(error)

    def _forget(self, assignment: HostAssignment) -> None:
        with self._lock:
            self._assignments.pop(assignment.host, None)
