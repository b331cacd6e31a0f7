"""One run of a verb, such as ``provision``: its request, hosts, connections, journal and views."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from hostwright.apply.events import Emit, Event, Note
from hostwright.apply.locking import locallocks
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.rollout.silence import Silence
from hostwright.common.command import Command
from hostwright.common.errors import Finding, HostError, Locked
from hostwright.common.input.passwordcommand import get_all
from hostwright.common.interruption import on_interrupt
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.plan.host import locks
from hostwright.plan.host.release import RunStamp
from hostwright.plan.model import Plan
from hostwright.plan.targets import Roster, TargetHost, Targets
from hostwright.stack import stackstore
from hostwright.stack.stack import Artifact, Stack

if TYPE_CHECKING:
    from hostwright.apply.delivery.sources.handout import Handout
    from hostwright.apply.host.scheduling.durations import Durations
    from hostwright.apply.host.scheduling.pastruns import PastRuns
    from hostwright.apply.journal.redaction import Redactor
    from hostwright.apply.journal.writing import Journal

T = TypeVar("T")

STOPPING = (
    "stopping: waiting for what runs on the hosts, and starting nothing new. "
    "Press Ctrl-C again to leave at once; the jobs continue there, and %s re-attaches to them."
)
THE_SAME = "the same command again"
NO_OPTIONS: Mapping[str, object] = {}


def _discard(_: object) -> None:
    """Do nothing with an event. Default for runs and views that show no events."""


class _ViewFailed(BaseException):
    """An error that a view raised, in any thread. As a ``BaseException``, it is not mistaken for an error of a host."""

    def __init__(self, error: Exception):
        super().__init__(error)
        self.error = error


class View:
    """Base class of views, which show the progress of a run or an audit. This class itself shows nothing."""

    def show(self, targets: Sequence[TargetHost], run: str) -> AbstractContextManager[Emit]:  # noqa: ARG002
        """Return a context manager whose value is a function that receives the events of a run, from any thread.

        ``run`` is the ID of the run; empty if the run is not recorded.
        """
        return nullcontext(_discard)

    def warn(self, sentence: str) -> None:
        """Show ``sentence``, a message that belongs to no event, for example that the journal cannot be written."""

    @contextmanager
    def shown(self, targets: Sequence[TargetHost], run: str = "") -> Iterator[Emit]:
        """Yield a function that passes events to the view (see ``show``).

        An error of the view ends the run, instead of counting as an error of a host.
        """

        def emit(event: Event) -> None:
            try:
                show(event)
            except Exception as error:
                raise _ViewFailed(error) from error

        with self.show(targets, run) as show:
            try:
                yield emit
            except _ViewFailed as failed:
                raise failed.error from failed


class Listener(View):
    """A view that passes each event of a run to the function ``emit``."""

    def __init__(self, emit: Emit):
        self._emit = emit

    def show(self, targets: Sequence[TargetHost], run: str) -> AbstractContextManager[Emit]:  # noqa: ARG002
        """Return a context manager whose value is the function ``emit``."""
        return nullcontext(self._emit)


NO_VIEW = View()
NO_STAMP = RunStamp("")


@dataclass(frozen=True, slots=True)
class RunResults(Generic[T]):
    """The results of a run: its ID in the journal (``run``), the result of each host, and the exit status.

    The ID is empty if the run was not recorded.
    """

    run: str
    results: Results[T]
    status: int


@dataclass(frozen=True, slots=True)
class Agreed:
    """The plan of a host that the operator approved, and the permanent losses that the operator was shown.

    ``losses`` is ``None`` if the operator was not asked.
    """

    plan: Plan
    losses: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Consent:
    """The approved plan of each host, and the errors of those hosts that could not be planned."""

    plans: Mapping[str, Agreed] = field(default_factory=dict)
    errors: Mapping[str, HostError] = field(default_factory=dict)


def again(verb: str, run: str) -> str:
    """Return the command that continues a run of ``verb``. ``run`` is the ID of the run; empty if the run was not
    recorded.
    """
    return str(Command("provision", resume=run)) if verb == "provision" and run else THE_SAME


def _no_secrets() -> Redactor:
    from hostwright.apply.journal.redaction import Redactor

    return Redactor(())


def _past_runs() -> PastRuns:
    from hostwright.apply.host.scheduling.pastruns import PastRuns

    return PastRuns(state_root())


@dataclass(eq=False)
class Run:
    """One run of ``verb`` on ``targets``. The run is recorded and shown from ``begun`` on."""

    verb: str
    roster: Roster
    targets: Targets
    connections: Connections
    request: Request
    view: View = NO_VIEW
    #: artifact name → file, for artifacts that are not in the stack
    files: Mapping[str, Path] = field(default_factory=dict)
    stamp: RunStamp = NO_STAMP
    consent: Consent = field(default_factory=Consent)
    emit: Emit = _discard  #: function that receives events from any thread
    journal: Journal | None = None
    silence: Silence | None = None
    handout: Handout | None = None  #: distributor of files by HTTP; ``None`` if no host fetches by HTTP
    worker: str = ""  #: name of the worker that runs this process; empty on the operator's machine
    redactor: Redactor = field(default_factory=_no_secrets)  #: object that masks secrets in texts that come from hosts
    past: PastRuns = field(default_factory=_past_runs)
    #: event that is set when no further jobs may start
    stopping: threading.Event = field(default_factory=threading.Event)
    _listeners: list[Emit] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.emit is _discard:
            self.emit = self._show

    def _show(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    @property
    def id(self) -> str:
        """The ID of the run, set even if the run is not recorded."""
        return self.stamp.id

    @property
    def record(self) -> str:
        """The ID of the run in the journal; empty if the run is not recorded."""
        return self.id if self.journal is not None and self.journal.kept else ""

    @property
    def again(self) -> str:
        """The command that continues the run."""
        return again(self.verb, self.id if self.worker else self.record)

    @contextmanager
    def begun(
        self, left: str, leads_on: str = "", own: Mapping[str, object] = NO_OPTIONS, *, shown: bool = True
    ) -> Iterator[Self]:
        """Record the run, and show the run in its view, until the end of the block.

        ``left`` is the message for Ctrl-C (``on_interrupt``). If the run is recorded, ``leads_on`` continues this
        message; ``{run}`` in ``leads_on`` is the run's ID. Without ``shown``, events are shown only within ``shown()``.
        ``own`` are options to record in addition to the request.

        A journal that cannot be written only causes a warning, so that a full disk does not block repairs of hosts.
        """
        # These modules are imported here, because only recorded runs need them.
        from hostwright.apply.journal.header import RunHeader
        from hostwright.apply.journal.redaction import secrets_in
        from hostwright.apply.journal.writing import Journal
        from hostwright.apply.notifying import Notifier, secrets_of

        roster, targets, connections, notify = self.roster, self.targets, self.connections, self.request.notify
        get_all(secret for target in targets for secret in (target.host.password, connections.password(target)))
        names, options = [target.name for target in targets], self.request.recorded(**own)
        header = RunHeader.now(self.verb, names, roster.path, options, site=roster.site.root)
        hidden = secrets_in(roster.inventory.hosts.values(), targets)
        secrets = {*hidden, *connections.secrets, *secrets_of(notify)}
        begun = Journal.begin(state_root(), header, secrets=secrets, on_trouble=self.view.warn)
        with ExitStack() as after, begun as journal:
            header, self.journal, self.redactor = journal.header, journal, journal.redactor
            self.stamp = RunStamp(header.run, header.operator, header.began, header.commit)
            notifier = Notifier(notify, header, self.redactor, self.view.warn, roster.site.root)
            after.callback(lambda: notifier.end(journal.ending))

            def tell(event: Event) -> None:
                journal(event)
                notifier(event)
                self._show(event)

            message = left + (leads_on.format(run=self.record) if self.record else "")
            with on_interrupt(message), self.shown() if shown else nullcontext(), Silence(tell) as silence:
                self.emit = self.silence = silence
                yield self

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the run's events in its view while the context lasts."""
        with self.view.shown(self.targets, self.id) as show:
            self._listeners.append(show)
            yield
            self._listeners.remove(show)

    @contextmanager
    def handing_out(self) -> Iterator[None]:
        """Distribute files to the hosts that fetch their files by HTTP, while the context lasts."""
        from hostwright.apply.delivery.sources.handout import Handout
        from hostwright.apply.delivery.sources.settings import files_by_http

        with Handout(self.id, files_by_http(self.targets), self.emit) as self.handout:
            yield

    def end(self, results: Results[T], status: int, **how: str) -> RunResults[T]:
        """Record the end of the run with the exit status ``status``, and return the results of the run. ``how`` is as
        in ``Journal.end``.
        """
        if self.journal is not None:
            self.journal.end(status, sentence=results.stopped_because, **how)
        return RunResults(self.record, results, status)

    def silent(self) -> frozenset[str]:
        """Return the hosts that do not answer (``Silence.hosts``)."""
        return self.silence.hosts() if self.silence is not None else frozenset()

    def stop(self) -> None:
        """Start no further jobs, and emit a note. Current file transfers stop; the next run resumes these transfers."""
        self.stopping.set()
        self.emit(Note("", STOPPING % self.again))
        if self.handout is not None:
            threading.Thread(target=self.handout.stop, name="stop-files", daemon=True).start()

    def refuse(self, name: str) -> None:
        """Raise an error if the host ``name`` must not be changed.

        Raises ``Locked`` if this machine has a lock for the host. If the host could not be planned, raises the host's
        own error.
        """
        if name in self.consent.errors:
            raise self.consent.errors[name]
        if refused := locallocks.refusal(state_root(), self.roster.path, name, datetime.now(UTC)):
            raise Locked(name, refused)

    def holder(self, name: str) -> locks.Holder:
        """Return the holder that a lock of this run on the host ``name`` shows."""
        owner = f"{self.stamp.operator} through {self.worker}"[:200] if self.worker else ""
        return locks.holder(self.id, name, datetime.now(UTC), owner)

    def locate(self, artifact: Artifact) -> Path:
        """Return the path of the file ``artifact`` on this machine. Raises ``ArtifactError`` if the file is missing."""
        return self.files.get(artifact.name) or self.roster.store.locate(artifact)

    def explain(self, output: str) -> Finding | None:
        """Return the known problem in ``output``, which a failed command printed; ``None`` if none is found."""
        return self.roster.knowledge.explain(self.roster, output)

    def keep(self, stack: Stack) -> str:
        """Store ``stack``, of a verified host, on the operator's machine for a rollback. Return any error message."""
        return "" if self.worker else stackstore.keep(stack)

    def durations(self, stack: Stack) -> Durations:
        """Return the expected durations of steps on a host with ``stack``."""
        from hostwright.apply.host.scheduling.durations import Durations

        sizes = {name: artifact.size or 0 for name, artifact in stack.artifacts.items()}
        return Durations(self.past.of(stack.name), sizes)
