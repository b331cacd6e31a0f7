"""Rebuild of many hosts as one run. All hosts are diagnosed first, and then rebuilt, as many at a time as allowed.

Before any host is changed, the operator consents to ending work and to overwriting disks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from hostwright.apply.events import HostEnded, Note
from hostwright.apply.rollout.applying import LEFT_RUNNING
from hostwright.apply.rollout.consent import Ask, folded, unasked
from hostwright.apply.rollout.limits import read_limits
from hostwright.apply.rollout.rollout import NOTHING_CHANGED, Interrupted, Results, on_each, result_of, roll_out
from hostwright.apply.run import Run
from hostwright.common.durations import Clock
from hostwright.common.errors import AS_DESIRED, FAILED, INTERRUPTED, HostError, HostwrightError
from hostwright.common.interruption import on_interrupt
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.inventory.patterns import counted
from hostwright.plan.targets import TargetHost
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
from hostwright.verify.checking import check_layers

#: outcome of a rebuild → result in the journal, one of ``events.RESULTS``
ENDED: Mapping[Outcome, str] = {
    "rebuilt": "changed",
    "as desired": "as desired",
    "failed": "failed",
    "handed over": "failed",
}


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions about the rebuild of hosts, by host. ``errors`` are from hosts that could not be diagnosed."""

    of: Mapping[str, Decision]
    errors: tuple[HostError, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Result of a run of rebuilds; ``errors`` are from hosts without a decision and from failed rebuilds."""

    run: str
    decisions: Mapping[str, Decision]
    results: Results[Rebuild]
    errors: tuple[HostError, ...]
    status: int


def decide(run: Run, start: Start | None) -> Decisions:
    """Diagnose all hosts of ``run``, and decide how to rebuild each. Nothing is changed or recorded.

    ``start`` is the method that the operator requested with ``--from``, if any.
    """
    with SeedServers() as servers:
        rebuilds = _Rebuilds(run, servers)
        return rebuilds.decide(rebuilds.of_hosts(start))


def rebuild(run: Run, start: Start | None, ask: Ask | None, decided: Callable[[Decisions], None]) -> Rebuilt:
    """Diagnose the hosts of ``run``, decide how to rebuild each, and rebuild them.

    ``start`` is the method that the operator requested with ``--from``, if any. Before any host is changed, ``decided``
    receives all decisions, and ``ask`` asks for consent to methods that end work.
    """
    refuse_overwriting(run.targets.by_name if start == "reinstall" else (), run.request, ask)
    limits, accept = read_limits(run.request, len(run.targets)), ProofsPass.of(run)
    with (
        SeedServers() as servers,
        run.begun(NOTHING_CHANGED, " (run {run})", {"from": start or ""}, shown=False),
        run.handing_out(),
    ):
        rebuilds = _Rebuilds(run, servers, accept)
        hosts = rebuilds.of_hosts(start)
        decisions = rebuilds.decide(hosts)
        decided(decisions)
        consent(decisions.of, run.request, ask)
        try:
            with on_interrupt(LEFT_RUNNING % run.again), run.shown():
                results = roll_out(
                    tuple(decisions.of),
                    lambda name: rebuilds.apply(hosts[name], decisions.of[name]),
                    limits=limits,
                    emit=run.emit,
                    stop=run.connections.close,
                    on_interrupt=run.stop,
                    silent=run.silent,
                    result=lambda done: ENDED[done.outcome],
                )
        except Interrupted as stop:
            errors = (*decisions.errors, *stop.results.errors)
            stop.ended = Rebuilt(run.record, decisions.of, stop.results, errors, INTERRUPTED)
            raise
        errors = (*decisions.errors, *results.errors)
        bad = errors or results.untouched or any(ENDED[done.outcome] == "failed" for done in results.values)
        ended = run.end(results, FAILED if bad else AS_DESIRED)
    return Rebuilt(ended.run, decisions.of, results, errors, ended.status)


@dataclass(frozen=True)
class _Rebuilds:
    run: Run
    servers: SeedServers
    accept: ProofsPass | None = None

    @property
    def records(self) -> Records:
        return Records(state_root(), self.run.roster.path)

    def of_hosts(self, start: Start | None) -> dict[str, HostRebuild]:
        return {target.name: HostRebuild(self.tools(target), start) for target in self.run.targets}

    def decide(self, rebuilds: Mapping[str, HostRebuild]) -> Decisions:
        try:
            looked = on_each(
                tuple(rebuilds), lambda name: self.diagnose(rebuilds[name]), stop=self.run.connections.close
            )
        except Interrupted as cut:
            cut.ended = Decisions(dict(cut.results.values), cut.results.errors)
            raise
        for error in looked.errors:
            self.run.emit(HostEnded(error.host, result_of(error), error.sentence))
        return Decisions(dict(looked.values), looked.errors)

    def tools(self, target: TargetHost) -> Tools:
        ways = _ways(target)
        return Tools(
            run=self.run,
            target=target,
            ways=ways,
            install=self._installer(target, ways),
            trust=lambda error: self._trust(target, error),
            check=lambda: check_layers(target, self.run.roster, self.run.connections.password(target)),
            history=self.records.of(target.name),
            accept=self.accept,
        )

    def diagnose(self, rebuild: HostRebuild) -> tuple[str, Decision]:
        """Raises ``Locked`` if this machine has a lock for the host."""
        self.run.refuse(rebuild.name)
        return rebuild.name, rebuild.diagnose()

    def apply(self, rebuild: HostRebuild, decision: Decision) -> Rebuild:
        done = rebuild.run(decision)
        if ENDED[done.outcome] != "failed":
            self._finish_installation(self.run.targets.by_name[rebuild.name])
        try:
            self.records.add(done)
        except HostwrightError as error:
            self.run.emit(Note(rebuild.name, f"the times of this rebuild were not recorded: {error}"))
        self.run.emit(HostEnded(rebuild.name, ENDED[done.outcome], done.sentence))
        return done

    def _installer(self, target: TargetHost, ways: Ways) -> Installer:
        return Installer(self.run, target, ways.open_bmc, self.servers, Clock())

    def _finish_installation(self, target: TargetHost) -> None:
        """Replace the host key from a seed, if the host still uses this key. If the replacement fails, only a note is
        emitted.
        """
        try:
            self._installer(target, _ways(target)).finish()
        except HostError as error:
            self.run.emit(Note(target.name, f"the host still uses the host key from its seed: {error.sentence}"))

    def _trust(self, target: TargetHost, error: HostKeyMismatch) -> None:
        """Record the new host key in ``error`` if the host's console confirms it, without asking the operator."""
        if error.offered is None:
            raise error  # An error without ``offered`` is about the key of a jump host.
        before = known(target.host, target.options)
        sources = Sources(console=read_means(target.host).console_command)
        confirmed = confirm(target.host, error.offered, before, sources)
        replaced = replace(target.host, target.options, confirmed.keys)
        sentence = f"the new host key {error.offered} was confirmed by {confirmed.source} and recorded"
        self.run.emit(Note(target.name, f"{sentence} in {', '.join(map(str, replaced.files))}"))


def _ways(target: TargetHost) -> Ways:
    if target.host.local:
        return Ways(None, "")  # A power cycle of this machine would end the run.
    means = read_means(target.host)
    open_: Callable[[], Controller] | None = Opener(means.bmc) if means.bmc is not None else None
    how: Reinstall = "redfish" if means.install else "command" if means.reinstall else ""
    return Ways(open_, how)


#: method that needs the operator's consent → effect on the hosts
_WAYS = {
    "reinstall": "installs a new operating system on {}: their disks are overwritten",
    "relayer": "removes all layers from {}, and provisions them again",
    "power cycle": "power-cycles or reboots {}",
}


def consent(decisions: Mapping[str, Decision], request: Request, ask: Ask | None) -> None:
    """Ask the operator once for consent to methods that end work, unless ``ask`` is ``None`` or ``--yes`` is given.

    Raises the errors of ``ask``, and ``InputError`` if disks may be overwritten without consent.
    """
    if request.yes:
        return
    if ask is None:
        refuse_overwriting(overwritten(decisions), request, ask)
    else:
        ask([*consequences(decisions)], len(decisions))


def refuse_overwriting(hosts: Iterable[str], request: Request, ask: Ask | None) -> None:
    """Raise ``InputError`` if disks of ``hosts`` may be overwritten, and neither ``ask`` nor ``--yes`` gives
    consent.
    """
    if (names := [*hosts]) and ask is None and not request.yes:
        what = f"this rebuild may install a new operating system, which overwrites disks ({counted(names)})"
        raise unasked(what)


def consequences(decisions: Mapping[str, Decision]) -> Iterator[str]:
    """Yield sentences for the question to the operator about the effects of ``decisions``."""
    hosts_by_way: dict[str, list[str]] = {}
    for host, decision in decisions.items():
        if decision.refusal:
            continue
        if decision.way in _WAYS:
            hosts_by_way.setdefault(_WAYS[decision.way], []).append(host)
        if "reinstall" in decision.escalation:
            hosts_by_way.setdefault(f"if that does not help, {_WAYS['reinstall']}", []).append(host)
    return folded(hosts_by_way)


def overwritten(decisions: Mapping[str, Decision]) -> list[str]:
    """Return the hosts whose disks the decided method, or a method that may follow, overwrites."""
    ways = {host: (each.way, *each.escalation) for host, each in decisions.items() if not each.refusal}
    return [host for host, each in ways.items() if "reinstall" in each]
