"""Assigns the hosts of a run to workers, and handles messages of workers. This module does not contact the cluster.

A host has one worker at a time, the one with the latest claim. If the cluster assigns the host of a lost worker to
another worker, the lost worker must release the host. The finished work of the lost worker counts, and its later
messages are ignored.
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

#: maximum number of further tries with a host after the loss of a worker (our choice). Dask has the same default.
AGAIN = 3
LET_GO = "%d workers released this host, most recently %s; a running job on the host continues; run again"
LOST = (
    "%d workers were lost while they worked on this host, most recently %s; check their logs; a running job on the "
    "host continues; run again"
)
NOT_TLS = "the worker %s is not connected by TLS, so no passwords are sent to it; enable TLS for the worker"


@dataclass
class HostAssignment:
    """The assignment of one host to workers: its present worker, and the work of earlier workers that were lost."""

    host: str
    future: Future[Outcome]
    send: Callable[[], None]  #: function that sends the host to the cluster
    texts: tuple[str, ...] = field(default=(), repr=False)  #: texts of the secrets that are needed for work on the host
    worker: str = ""  #: address of the worker that works on the host
    name: str = ""
    mailbox: bytes = b""
    attempt: str = ""
    number: int = 0  #: sequence number of the worker's last recorded message
    given: frozenset[str] = frozenset()  #: addresses of the workers that may claim the host
    sent: int = 0  #: number of times that the host was sent to the cluster
    taken: bool = False
    times: int = 0  #: number of workers that were lost while they had the host, or that released the host
    plan: Plan | None = None  #: first plan for the host that a worker reported
    results: tuple[RoleResult, ...] = ()  #: results of the host's roles in the current attempt
    reboots: int = 0
    #: results of the host's roles, and number of reboots, in the attempts of lost workers
    before: tuple[tuple[RoleResult, ...], int] = ((), 0)
    jobs: dict[str, str] = field(default_factory=dict)  #: role → ID of the role's running job
    ended: frozenset[str] = frozenset()  #: IDs of this host's jobs whose end was reported
    was_lost: bool = False  #: whether an earlier worker with the host was lost

    @property
    def go(self) -> Go:
        """The permission to begin work, for the attempt that has claimed the host."""
        begun = self.number > 1  # The first message of an attempt only claims the host.
        return Go(b"" if begun else encrypted_for(self.texts, self.mailbox), self.ended if self.was_lost else None)

    def note(self, event: Event) -> None:
        """Store the data of ``event`` that the host's next worker needs if the present worker is lost."""
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
        """Record the loss of the host's worker. The worker's results become results of earlier attempts."""
        done, reboots = self.before
        self.before = ((*done, *self.results), reboots + self.reboots)
        self.results, self.reboots, self.was_lost = (), 0, True

    def whole(self, outcome: Outcome) -> Outcome:
        """Return ``outcome`` of the last worker, with the work of lost workers on the same host added."""
        done, reboots = self.before
        return replace(
            outcome,
            plan=(self.plan if done or reboots else None) or outcome.plan,
            results=(*done, *outcome.results),
            reboots=reboots + outcome.reboots,
        )


class Dispatch:
    """The hosts of one run that were sent to a cluster and whose work has not ended.

    One thread calls all methods except ``add``, ``heartbeat`` and ``heard``. ``speak(worker)`` requests a heartbeat for
    a worker. ``recover(worker, known)`` returns the messages of a lost worker that follow the ``known`` number of each
    attempt.
    """

    def __init__(
        self,
        run: Run,
        speak: Callable[[str], None],
        *,
        recover: Callable[[str, Mapping[str, int]], Iterable[Message]] = lambda _worker, _known: (),
    ):
        self._run, self._emit, self._speak, self._recover = run, run.emit, speak, recover
        self._lock = threading.Lock()  # This lock guards the fields below.
        self._assignments: dict[str, HostAssignment] = {}  #: host → assignment of a host whose work has not ended
        self._leave: dict[str, set[str]] = {}

    def add(self, assignment: HostAssignment) -> None:
        """Add the assignment of a host before the host is sent to the cluster."""
        with self._lock:
            self._assignments[assignment.host] = assignment

    def heartbeat(self, worker: str) -> Heartbeat:
        """Return the state of the run, as a heartbeat, for the worker at address ``worker``."""
        with self._lock:
            going = {
                assignment.attempt: assignment.go
                for assignment in self._assignments.values()
                if assignment.worker == worker
            }
            return Heartbeat(self._run.stopping.is_set(), going, frozenset(self._leave.get(worker, ())))

    def sent(self, host: str, workers: Iterable[str]) -> int:
        """Record that ``host`` was sent to the cluster, for one of ``workers``. Return how often ``host`` was sent so
        far.
        """
        with self._lock:
            if (assignment := self._assignments.get(host)) is None:
                return 0
            assignment.given, assignment.sent, assignment.taken = frozenset(workers), assignment.sent + 1, False
            return assignment.sent

    def is_current(self, host: str, sent: int) -> bool:
        """Return whether the task with the number ``sent`` is the latest for ``host``."""
        with self._lock:
            return (assignment := self._assignments.get(host)) is not None and assignment.sent == sent

    def heard(self, worker: str, heartbeat: Heartbeat) -> None:
        """Record that ``heartbeat`` was delivered to ``worker``."""
        with self._lock:
            self._leave.get(worker, set()).difference_update(heartbeat.leave)

    def take(self, message: Message) -> None:
        """Handle one message from a worker."""
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
        """Handle the end of a task for ``host``. Unless the work on the host has ended, send the host again."""
        assignment = self._assignment(host)
        if assignment is None:
            return
        if error is not None:
            self._end(assignment, error)
        else:
            self._give_again(assignment, LET_GO)

    def strand(self, workers: Collection[str]) -> None:
        """Send each host again if all workers that could claim the host are lost. ``workers`` are the available
        workers.

        The loss counts as a failed attempt for each host that a lost worker had claimed, because the host may crash
        workers.
        """
        stranded = [
            assignment for assignment in self._left() if assignment.given and assignment.given.isdisjoint(workers)
        ]
        nobody = not any(assignment.taken for assignment in stranded)
        for assignment in stranded:
            self._give_again(assignment, LOST, counts=assignment.taken or nobody)

    def lose(self, because: str, then: str) -> None:
        """End the work on every host with ``ExecutorLost``, because no worker is available."""
        for assignment in self._left():
            self._end(assignment, ExecutorLost(assignment.host, because, then))

    def cut(self) -> None:
        """Make every worker release its hosts at once, and end the work on every host as stopped."""
        for assignment in self._left():
            self._dismiss(assignment.worker, assignment.attempt)
            self._end(assignment, Stopped(assignment.host, CUT))

    def fail(self, error: BaseException) -> None:
        """End the work on every host with ``error``, which occurred on this machine."""
        for assignment in self._left():
            self._end(assignment, error)

    def known(self) -> dict[str, int]:
        """Return the number of the last received message of each current attempt, by attempt."""
        with self._lock:
            return {
                assignment.attempt: assignment.number for assignment in self._assignments.values() if assignment.attempt
            }

    def _give_again(self, assignment: HostAssignment, why: str, *, counts: bool = True) -> None:
        """Send a host to the available workers again. After ``AGAIN`` further attempts, end the work on the host with
        the error message ``why``. This call counts as a failed attempt if ``counts`` is true.
        """
        assignment.times += counts
        if assignment.times > AGAIN:
            self._end(assignment, HostError(assignment.host, why % (assignment.times, assignment.name or "unknown")))
        else:
            assignment.send()

    def _assignment(self, host: str) -> HostAssignment | None:
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
        for message in self._recover(assignment.worker, {assignment.attempt: assignment.number}):
            if message.attempt == assignment.attempt and isinstance(message.body, Reported):
                self._hear(assignment, message)
        self._dismiss(assignment.worker, assignment.attempt)
        assignment.lose()
        # This note adds the attempt to the journal even if the worker reported nothing.
        origin = EventOrigin(assignment.worker, assignment.attempt, 0)
        self._emit(
            Note(assignment.host, f"the worker {assignment.name} was lost; {successor} continues", origin=origin)
        )

    def _hear(self, assignment: HostAssignment, message: Message) -> None:
        if message.number:
            if message.number <= assignment.number:
                return  # An earlier call has recovered this message.
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
