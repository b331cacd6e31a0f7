"""Many hosts rebuilt as one run: all looked at first, then each carried out in its turn, and recorded."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from hostwright.apply.delivery.sources.handout import Handout
from hostwright.apply.events import Emit, Event, HostEnded, Note
from hostwright.apply.locking import locallocks
from hostwright.apply.rollout.applying import LEFT_RUNNING, THE_SAME, Accept, Work, handout_for, stop_gently
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.limits import read_limits
from hostwright.apply.rollout.recording import Audience, recorded
from hostwright.apply.rollout.rollout import (
    NOTHING_CHANGED,
    Interrupted,
    Results,
    on_each,
    result_of,
    roll_out,
)
from hostwright.common.durations import Clock
from hostwright.common.errors import AS_DESIRED, FAILED, INTERRUPTED, HostError, HostwrightError, Locked
from hostwright.common.interruption import on_interrupt
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.plan.host.release import RunStamp
from hostwright.plan.targets import Roster, TargetHost, Targets
from hostwright.prove.proving import ProofsPass
from hostwright.rebuild.bmc import Controller, Opener
from hostwright.rebuild.host.hostrebuild import HostRebuild
from hostwright.rebuild.host.tools import Tools
from hostwright.rebuild.install.installing import Installer
from hostwright.rebuild.install.serving import SeedServers
from hostwright.rebuild.install.sources import Sources, confirm
from hostwright.rebuild.rebuild import Outcome, Rebuild, Start
from hostwright.rebuild.records import Records
from hostwright.rebuild.ways.diagnosis import Reinstall
from hostwright.rebuild.ways.means import read_means
from hostwright.rebuild.ways.probing import Ways
from hostwright.rebuild.ways.ways import Decision
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.transport.identity.trusting import known, replace
from hostwright.transport.root.rootshell import RootShell
from hostwright.verify.checking import check_layers
from hostwright.verify.verdict import Check

#: what became of a host, in the words of the journal (``events.RESULTS``)
ENDED: Mapping[Outcome, str] = {
    "rebuilt": "changed",
    "as desired": "as desired",
    "failed": "failed",
    "handed over": "failed",
}


@dataclass(frozen=True, slots=True)
class Decisions:
    """How each host would be rebuilt, by its name; ``errors`` are those of hosts that are not rebuilt."""

    of: Mapping[str, Decision]
    errors: tuple[HostError, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of a run of rebuilds; ``errors`` are those of the decisions and of the rebuilds."""

    run: str
    decisions: Mapping[str, Decision]
    results: Results[Rebuild]
    errors: tuple[HostError, ...]
    status: int


def decide(
    roster: Roster, targets: Targets, start: Start | None, connections: Connections, request: Request
) -> Decisions:
    """Look at all hosts and say which way each would take; nothing is changed, and nothing is recorded."""
    with SeedServers() as servers:
        run = _Run(roster, targets, connections, request, RunStamp(""), _nobody_hears, threading.Event(), servers)
        return run.decide(run.rebuilds(start))


def rebuild(
    roster: Roster,
    targets: Targets,
    start: Start | None,
    connections: Connections,
    audience: Audience,
    *,
    request: Request,
    decided: Callable[[Decisions], None],
) -> Rebuilt:
    """Bring hosts back, each on the way that is decided for it; ``decided`` is told before any host is changed.

    With ``request.prove``, work comes back to a host only after its proofs of that level have passed.
    """
    limits, prove = read_limits(request, len(targets)), request.prove
    accept = ProofsPass.of(roster, targets, prove, connections, audience) if prove else None
    request = roster.request_of(targets, request)
    options = request.recorded(**{"from": start or ""})
    stopping = threading.Event()
    with ExitStack() as stack:
        servers = stack.enter_context(SeedServers())
        recording = stack.enter_context(
            recorded(
                "rebuild", roster, targets, connections,
                audience=audience, options=options, shown=False, left=NOTHING_CHANGED, record=" (run {run})",
            )
        )  # fmt: skip
        handout = stack.enter_context(handout_for(recording.run.id, targets, recording.emit))
        run = _Run(
            roster, targets, connections, request, recording.run, recording.emit, stopping, servers, accept, handout
        )
        rebuilds = run.rebuilds(start)
        decisions = run.decide(rebuilds)
        decided(decisions)
        try:
            with on_interrupt(LEFT_RUNNING % THE_SAME), recording.view():
                results = roll_out(
                    tuple(decisions.of),
                    lambda name: run.apply(rebuilds[name], decisions.of[name]),
                    limits=limits,
                    emit=recording.emit,
                    stop=connections.close,
                    on_interrupt=lambda: stop_gently(stopping, recording.emit, THE_SAME, handout),
                    silent=recording.silence.hosts,
                    result=lambda done: ENDED[done.outcome],
                )
        except Interrupted as stop:
            errors = (*decisions.errors, *stop.results.errors)
            stop.ended = Rebuilt(recording.record, decisions.of, stop.results, errors, INTERRUPTED)
            raise
        errors = (*decisions.errors, *results.errors)
        bad = errors or results.untouched or any(ENDED[done.outcome] == "failed" for done in results.values)
        status = FAILED if bad else AS_DESIRED
        recording.journal.end(status, sentence=results.stopped_because)
    return Rebuilt(recording.record, decisions.of, results, errors, status)


def _nobody_hears(_event: Event) -> None:
    """Where nothing is done, nothing is told on the way."""


@dataclass(frozen=True)
class _Run:
    """What the rebuilds of one run share."""

    roster: Roster
    targets: Targets
    connections: Connections
    request: Request
    run: RunStamp
    emit: Emit
    stopping: threading.Event
    servers: SeedServers
    accept: Accept | None = None
    handout: Handout | None = None

    @property
    def records(self) -> Records:
        """The rebuilds that this machine remembers."""
        return Records(state_root(), self.roster.path)

    def rebuilds(self, start: Start | None) -> dict[str, HostRebuild]:
        """The rebuild of each host, of which nothing is done yet."""
        return {target.name: HostRebuild(self.tools(target), start) for target in self.targets}

    def decide(self, rebuilds: Mapping[str, HostRebuild]) -> Decisions:
        """Look at all hosts; nothing is changed."""
        try:
            looked = on_each(tuple(rebuilds), lambda name: self.diagnose(rebuilds[name]), stop=self.connections.close)
        except Interrupted as stop:
            stop.ended = Decisions(dict(stop.results.values), stop.results.errors)
            raise
        for error in looked.errors:
            self.emit(HostEnded(error.host, result_of(error), error.sentence))
        return Decisions(dict(looked.values), looked.errors)

    def tools(self, target: TargetHost) -> Tools:
        """What the rebuild of one host needs."""
        roster, connections = self.roster, self.connections
        request = dataclasses.replace(
            self.request, yes=True
        )  # a rebuild is asked for from any state, whatever was there
        by_name, accept = self.targets.by_name, self.accept
        work = Work(
            roster,
            by_name,
            connections,
            self.run,
            self.emit,
            self.stopping,
            request,
            accept=accept,
            handout=self.handout,
        )
        ways = _ways(target)
        return Tools(
            target=target,
            connect=lambda: connections.connect(target),
            settings=work.settings(target),
            ways=ways,
            install=self._installer(target, ways),
            trust=lambda error: self._trust(target, error),
            check=lambda: self._checks(target),
            history=self.records.of(target.name),
            root=state_root(),
            inventory=roster.path,
        )

    def diagnose(self, rebuild: HostRebuild) -> tuple[str, Decision]:
        """Look at a host and decide. Raises ``Locked`` for one that is kept out of use on this machine."""
        refused = locallocks.refusal(state_root(), self.roster.path, rebuild.name, datetime.now(UTC))
        if refused:
            raise Locked(rebuild.name, refused)
        return rebuild.name, rebuild.diagnose()

    def apply(self, rebuild: HostRebuild, decision: Decision) -> Rebuild:
        """One host's rebuild, to its record."""
        done = rebuild.run(decision)
        if ENDED[done.outcome] != "failed":
            self._finish_installation(self.targets.by_name[rebuild.name])
        try:
            self.records.add(done)
        except HostwrightError as error:  # what became of the host is true all the same
            self.emit(Note(rebuild.name, f"its times were not recorded: {error}"))
        self.emit(HostEnded(rebuild.name, ENDED[done.outcome], done.sentence))
        return done

    def _installer(self, target: TargetHost, ways: Ways) -> Installer:
        def connect() -> RootShell:
            return self.connections.connect(target)

        return Installer(
            target, connect, ways.open_bmc, self.servers, self.run.id, self.emit, self.stopping.is_set, Clock()
        )

    def _finish_installation(self, target: TargetHost) -> None:
        """What an installation left to be done, in this run or an earlier one; the host is in service without it."""
        try:
            self._installer(target, _ways(target)).finish()
        except HostError as error:
            self.emit(Note(target.name, f"its host key is still the one of its seed: {error.sentence}"))

    def _checks(self, target: TargetHost) -> Sequence[Check]:
        return check_layers(target, self.roster, self.connections.password(target))

    def _trust(self, target: TargetHost, error: HostKeyMismatch) -> None:
        """Accept the new key where the console confirms it; nobody can be asked in the middle of a run."""
        if error.offered is None:
            raise error  # the key of a jump host, which is no business of this rebuild
        before = known(target.host, target.options)
        sources = Sources(console=read_means(target.host).console_command)
        confirmed = confirm(target.host, error.offered, before, sources)
        replaced = replace(target.host, target.options, confirmed.keys)
        sentence = f"its new key {error.offered} was confirmed by {confirmed.source} and recorded"
        self.emit(Note(target.name, f"{sentence} in {', '.join(map(str, replaced.files))}"))


def _ways(target: TargetHost) -> Ways:
    """How a host's power is switched, and how it is reinstalled, as the inventory says."""
    if target.host.local:
        return Ways(None, "")  # nobody would be left to see it come back
    means = read_means(target.host)
    open_: Callable[[], Controller] | None = Opener(means.bmc) if means.bmc is not None else None
    how: Reinstall = "redfish" if means.install else "command" if means.reinstall else ""
    return Ways(open_, how)
