"""One attempt of a worker to work on one host: it requests permission, works on the host, and reports.

After ``leave``, an attempt sends nothing more and closes its connections. Jobs on the host continue, and the next
worker of the host follows them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hostwright.apply.delivery.sources.handout import Handout
from hostwright.apply.events import Event
from hostwright.apply.executors.cluster.messages import Brief, Go, Task, fingerprint, new_attempt, unsealed
from hostwright.apply.executors.cluster.reporting import AttemptRecord, Reporter
from hostwright.apply.executors.cluster.sealing import Mailbox
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.host.scheduling.pastruns import PastRuns
from hostwright.apply.journal.redaction import Redactor
from hostwright.apply.rollout.applying import apply_to
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.run import Consent, Run
from hostwright.common.errors import ArtifactError, HostError, HostwrightError, Refused
from hostwright.common.operator import operator
from hostwright.common.places import state_root
from hostwright.common.secret import Secret
from hostwright.common.untrusted import Unforeseen, guarded
from hostwright.plan.targets import Roster, TargetHost, Targets

OTHER = (
    "the worker %s and this machine compute different desired states for this host, because files that its roles, "
    "stack or templates read differ"
)


@dataclass(frozen=True, slots=True)
class Workplace:
    """Values that all attempts of one run on one worker share."""

    brief: Brief
    roster: Callable[[], Roster]
    worker: str
    name: str
    send: Callable[[dict[str, Any]], None]
    mailbox: Mailbox = field(default_factory=Mailbox)
    #: past runs in the worker's state directory, read once
    past: PastRuns = field(default_factory=lambda: PastRuns(state_root()))


class Attempt:
    """One attempt of a worker to work on the host of ``task``. ``key`` is the name that the cluster gave to the
    task.
    """

    def __init__(self, place: Workplace, task: Task, key: str = ""):
        self.id = new_attempt()
        self.key = key
        self._place, self._task = place, task
        record = AttemptRecord.begin(place.brief.stamp.id, task.host, self.id)
        self._reporter = Reporter(task.host, self.id, place.worker, send=place.send, record=record)
        self._change = threading.Condition()
        self._go: Go | None = None
        self._left = False
        self._connections: Connections | None = None
        self._handout: Handout | None = None
        self._stopping = threading.Event()

    def go(self, go: Go) -> None:
        """Allow the attempt to begin, with the permission ``go``. Only the first call has an effect."""
        with self._change:
            if self._go is None:
                self._go = go
            self._change.notify_all()

    def stop(self) -> None:
        """Start no further job on the attempt's host."""
        self._stopping.set()

    def leave(self) -> None:
        """Release the attempt's host at once, and send nothing more. Returns without waiting."""
        with self._change:
            if self._left:
                return
            self._left = True
            self._change.notify_all()
            connections, handout = self._connections, self._handout
        self._reporter.leave()
        self._stopping.set()
        if handout is not None:
            handout.cut(self._task.host)
        if connections is not None:
            threading.Thread(target=connections.close, name="leave", daemon=True).start()

    def tell(self, event: Event) -> None:
        """Report an event of the whole run or of the attempt's host."""
        self._reporter(event)

    def run(self, handout: Handout | None = None) -> None:
        """Request permission, work on the host, and report the outcome or the ``HostwrightError`` of this work.

        Raises any other error. ``handout`` distributes files to the worker's hosts.
        """
        self._reporter.ask(self._place.name, self._place.mailbox.address)
        with self._change:
            self._change.wait_for(lambda: self._left or self._go is not None)
            if self._left or self._go is None:
                return
            go, self._handout = self._go, handout
        outcome: Outcome | None = None
        error: HostwrightError | None = None
        try:
            with guarded(self._task.host):
                outcome = self._work(go)
        except HostwrightError as failure:
            error = self._placed(failure)
        self._reporter.end(outcome, error)

    def _work(self, go: Go) -> Outcome:
        place, brief, name = self._place, self._place.brief, self._task.host
        texts = place.mailbox.read(go.encrypted)
        redactor = Redactor(Secret(text) for text in texts)
        self._reporter.text = redactor.text
        host, password = unsealed(self._task, texts)
        roster = place.roster()
        # No check is needed here, because the operator's machine has checked the host.
        target = roster.target(host, frozenset(brief.roles) or None, check=False)
        self._refuse_other(target)
        agreed = self._task.agreed
        run = Run(
            brief.verb,
            roster,
            Targets((target,)),
            self._connecting(password),
            brief.request,
            stamp=brief.stamp,
            consent=Consent({name: agreed} if agreed else {}),
            emit=self._reporter,
            handout=self._handout,
            worker=operator(),
            redactor=redactor,
            past=place.past,
            stopping=self._stopping,
        )
        return apply_to(run, name, ended=go.ended)

    def _refuse_other(self, target: TargetHost) -> None:
        if fingerprint(target) != self._task.wanted:
            raise Refused(target.name, OTHER % self._place.name)

    def _connecting(self, password: Secret | None) -> Connections:
        connections = Connections(password)
        with self._change:
            self._connections = connections
            left = self._left
        if left:
            connections.close()
        return connections

    def _placed(self, error: HostwrightError) -> HostwrightError:
        """Add the worker's name to ``error`` if the cause is the worker's machine and not the host."""
        on = f"on the worker {self._place.name}: "
        if isinstance(error, ArtifactError):
            return HostError(self._task.host, f"{on}{error}")
        if isinstance(error, Unforeseen):
            error.retell(f"{on}{error.sentence}")
        return error
