"""A run that applies a goal to many hosts: recorded in the journal, and shown while it lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hostwright.apply.delivery.sources.handout import Handout
from hostwright.apply.delivery.sources.settings import FileSettings, read_file_settings
from hostwright.apply.disturb.draining import read_hooks
from hostwright.apply.disturb.rebooting import read_reboot_timeout
from hostwright.apply.events import Emit, HostEnded, Note
from hostwright.apply.executors.executor import RunExecutor
from hostwright.apply.host.applying import HostApply
from hostwright.apply.host.outcome import Outcome, Settings
from hostwright.apply.host.scheduling.durations import Durations
from hostwright.apply.host.scheduling.pastruns import PastRuns
from hostwright.apply.locking import locallocks
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.consent import Ask, consent
from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.limits import read_limits
from hostwright.apply.rollout.recording import Audience, RunResults, recorded
from hostwright.apply.rollout.rollout import NOTHING_CHANGED, Interrupted, Results, roll_out
from hostwright.common.errors import AS_DESIRED, DIFFERS, FAILED, INTERRUPTED, Acceptance, HostError, Locked, worst
from hostwright.common.interruption import on_interrupt
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.plan.host import locks
from hostwright.plan.host.locks import Holder
from hostwright.plan.host.release import RunStamp
from hostwright.plan.model import Plan
from hostwright.plan.targets import REQUEST, Roster, TargetHost, Targets
from hostwright.stack import stackstore
from hostwright.stack.stack import Artifact, Stack

STOPPING = (
    "stopping: waiting for what runs on the hosts, and starting nothing new. "
    "Press Ctrl-C again to leave at once; the jobs continue there, and %s re-attaches to them."
)
THE_SAME = "the same command again"
LEFT_RUNNING = "interrupted. Jobs that run on the hosts go on; %s re-attaches to them."


def again(verb: str, run: str) -> str:
    """What continues a run of a verb; ``run`` is its id, empty where it is not recorded."""
    return f"`invoke provision --resume {run}`" if verb == "provision" and run else THE_SAME


@dataclass(frozen=True)
class Work:
    """What is done with one host of a run, given its name."""

    roster: Roster
    targets: Mapping[str, TargetHost]
    connections: Connections
    run: RunStamp
    emit: Emit
    stopping: threading.Event
    request: Request = REQUEST
    goal: Goal = AS_WANTED
    saved: Mapping[str, Plan] = field(default_factory=dict)
    as_saved: Callable[[Plan], Plan] = lambda plan: plan  #: a plan as the file with ``saved`` would hold it
    files: Mapping[str, Path] = field(default_factory=dict)  #: of artifacts that no stack has, by their names
    accept: Accept | None = None  #: what else is asked of each host that is as desired
    verb: str = ""  #: of which this is the work
    handout: Handout | None = None  #: of the run's files to its hosts
    clean: Callable[[str], str] = str  #: masks secrets in what a host printed
    keep: Callable[[Stack], str] = stackstore.keep  #: keeps the stack of a verified host; see ``Settings.keep``
    unplanned: Mapping[str, HostError] = field(default_factory=dict)  #: of hosts for which nobody could be asked
    owner: str = ""  #: in whose name hosts are locked; empty: in that of who runs this process
    ended: frozenset[str] | None = None  #: see ``Settings.ended``
    past: PastRuns = field(default_factory=lambda: PastRuns(state_root()))  #: how long steps took before

    def __call__(self, name: str) -> Outcome:
        """One host, from its connection to its end. Raises ``HostError`` likewise."""
        self.refuse(name)
        return self.apply(name)

    def refuse(self, name: str) -> None:
        """Raise ``Locked`` for a host that is set aside on this machine, and its error for one that nobody could agree
        to, since it could not be planned."""
        if name in self.unplanned:
            raise self.unplanned[name]
        if refused := locallocks.refusal(state_root(), self.roster.path, name, datetime.now(UTC)):
            raise Locked(name, refused)

    def apply(self, name: str) -> Outcome:
        """One host, from its connection to its end."""
        target = self.targets[name]
        host = HostApply(lambda: self.connections.connect(target), self.goal.desired(target), self.settings(target))
        try:
            outcome = host.apply(self.saved.get(name))
        finally:
            host.close()
        self.emit(HostEnded(name, outcome.word))
        return outcome

    def locate(self, artifact: Artifact) -> Path:
        """The file of an artifact on this machine. Raises ``ArtifactError``."""
        return self.files.get(artifact.name) or self.roster.store.locate(artifact)

    def durations(self, stack: Stack) -> Durations:
        """How long steps on a host with this stack are expected to take."""
        sizes = {name: artifact.size or 0 for name, artifact in stack.artifacts.items()}
        return Durations(self.past.of(stack.name), sizes)

    def settings(self, target: TargetHost) -> Settings:
        """What applying needs to know, from the options and the inventory."""
        return Settings(
            run=self.run,
            emit=self.emit,
            locate=self.locate,
            holder=locks.holder(self.run.id, target.name, datetime.now(UTC), self.owner),
            reboot_timeout_s=read_reboot_timeout(target.host),
            allow_reboot=not self.request.no_reboot,
            local=target.host.local,
            files=read_file_settings(target.host),
            private=self.files.keys(),
            handout=self.handout,
            hooks=read_hooks(target.host),
            drain=self.request.drain,
            undrain=not self.request.keep_drained,
            force=self.request.force,
            yes=self.request.yes,
            depart=self.goal.departs(target),
            keep=self.keep,
            explain=partial(self.roster.knowledge.explain, self.roster),
            clean=self.clean,
            examine=lambda shell, units: self.roster.knowledge.examine(target, shell, units, self.clean),
            again=again(self.verb, self.run.id),
            durations=lambda: self.durations(target.stack),
            retry_rules=partial(self.roster.knowledge.retry_rules, self.roster),
            as_saved=self.as_saved,
            stopping=self.stopping.is_set,
            ended=self.ended,
            accept=partial(self.accept, self, target) if self.accept else None,
        )


#: who works on the hosts of a run, while it lasts; the run's work is what is to be done
OpenExecutor = Callable[[Work], RunExecutor]
#: what is still asked of a host that is as desired, before it counts as done; see ``Settings.accept``
Accept = Callable[[Work, TargetHost, Holder | None], tuple[Acceptance, ...]]


def apply_goal(
    verb: str,
    roster: Roster,
    targets: Targets,
    connections: Connections,
    audience: Audience,
    *,
    request: Request,
    goal: Goal = AS_WANTED,
    saved: Mapping[str, Plan] | None = None,
    ask: Ask | None = None,
    files: Mapping[str, Path] | None = None,
    accept: Accept | None = None,
    open_executor: OpenExecutor | None = None,
) -> RunResults[Outcome]:
    """Bring hosts to a goal, as one run of ``verb``.

    A host whose goal raises a ``HostError`` is not touched, and counts as failed. ``saved`` are plans that were shown
    before: a host whose saved plan is stale is not touched. ``ask`` is asked once, before the run begins; then each
    host is changed as it was planned for that, or refused. ``files`` are those of artifacts that no stack has.
    ``accept`` is asked of each host that is as desired: where it raises ``NotAccepted``, the host has failed.
    ``open_executor`` gives the executor that works on them, by default this machine.
    Raises ``InputError`` for limits that cannot be read, and ``Interrupted`` with these results after a second Ctrl-C;
    errors of hosts are in the results.
    """
    limits = read_limits(request, len(targets), most=len(targets) if open_executor else None)
    request = roster.request_of(targets, request)
    agreed = consent(targets, connections, request, goal, saved=saved or {}, removes=verb == "remove", ask=ask)
    with (
        recorded(
            verb, roster, targets, connections, audience=audience, options=request.recorded(), left=NOTHING_CHANGED
        ) as recording,
        handout_for(recording.run.id, targets, recording.emit) as handout,
    ):
        then = again(verb, recording.record)
        stopping = threading.Event()
        work = Work(
            roster,
            targets.by_name,
            connections,
            recording.run,
            recording.emit,
            stopping,
            agreed.request,
            goal,
            agreed.plans,
            recording.journal.redactor.plan,
            files or {},
            accept,
            verb,
            handout,
            recording.journal.redactor.text,
            unplanned=agreed.errors,
        )
        try:
            with on_interrupt(LEFT_RUNNING % then), open_executor(work) if open_executor else nullcontext() as executor:
                results = roll_out(
                    tuple(targets.by_name),
                    work,
                    limits=limits,
                    emit=recording.emit,
                    stop=executor.cut if executor else connections.close,
                    on_interrupt=lambda: stop_gently(stopping, recording.emit, then, handout),
                    detach=connections.detach,
                    silent=recording.silence.hosts,
                    not_responding=connections.not_responding,
                    executor=executor,
                )
        except Interrupted as stop:
            stop.ended = RunResults(recording.record, stop.results, INTERRUPTED)
            raise
        status = status_of(results)
        recording.journal.end(status, sentence=results.stopped_because)
    return RunResults(recording.record, results, status)


def stop_gently(stopping: threading.Event, emit: Emit, then: str, handout: Handout | None = None) -> None:
    """Begin nothing new, and say so; ``then`` is what continues the run. Files that are on their way are left as they
    are, and continued next time."""
    stopping.set()
    emit(Note("", STOPPING % then))
    if handout is not None:
        threading.Thread(target=handout.stop, name="stop-files", daemon=True).start()


def handout_for(run: str, targets: Targets, emit: Emit) -> Handout:
    """Hands out the files of a run to those of its hosts that get them by HTTP."""
    return Handout(run, taking(targets), emit)


def taking(targets: Iterable[TargetHost]) -> Mapping[str, FileSettings]:
    """The hosts that get their files by HTTP, and how."""
    settings = {target.name: read_file_settings(target.host) for target in targets if not target.host.local}
    return {name: one for name, one in settings.items() if one.way == "pull"}


def status_of(results: Results[Outcome]) -> int:
    """The exit status of a run: 0 as desired, 1 something failed, 3 something is left to do, or was not accepted."""
    if results.errors:
        return worst(error.exit_status for error in results.errors)
    if results.untouched:
        return FAILED
    return DIFFERS if any(outcome.word == "pending" for outcome in results.values) else AS_DESIRED
