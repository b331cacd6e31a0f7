"""Runs the proofs of many hosts in parallel as one recorded run, and compares the hosts with their baselines and
peers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Self

from hostwright.apply.events import HostEnded
from hostwright.apply.rollout.rollout import NOTHING_CHANGED, Interrupted, Results, on_each, result_of
from hostwright.apply.run import Run, RunResults
from hostwright.common.command import Command
from hostwright.common.errors import (
    AS_DESIRED,
    DIFFERS,
    FAILED,
    INTERRUPTED,
    Acceptance,
    HostError,
    InputError,
    NotAccepted,
    Stopped,
)
from hostwright.common.input.nearest import suggestion
from hostwright.plan.targets import TargetHost, Targets
from hostwright.prove.fleetproof import FleetProof, HostProof
from hostwright.prove.host import HostProve, proofs_of
from hostwright.prove.judging import against_baseline, doubtful, measured_again, read_max_loss
from hostwright.prove.model import Level, Outcome, Proof, ProofResult
from hostwright.prove.peers.again import doubts_of, due_again, with_better
from hostwright.prove.peers.comparing import STATISTICS, against_peers
from hostwright.prove.proofstore import PastFigure, ProofStore

LEFT_PROVING = f"{NOTHING_CHANGED}. A proof that is running on a host continues to its end there"
LEADS_ON = f"; {Command('runs.show', run='{run}')} shows the measurements"
#: maximum number of repetitions for a figure that is worse than others (our choice); the third repetition reduces false
#: alarms from one in 500 figures to one in some thousands (``test_prove_phases.py``)
MOST_AGAIN = 3
BAD: tuple[Outcome, ...] = ("failed", "not run")  #: outcomes of a proof that leave the host not proved, the worst first


@dataclass(frozen=True, slots=True)
class ProveOptions:
    """Options of a run of proofs: the proofs to run, and whether their figures become the baselines of the hosts."""

    level: Level = "full"
    names: tuple[str, ...] = ()  #: names of proofs (``network.dense``) or layers to run; empty: all
    baseline: bool = False
    at_once: int = 0  #: maximum number of hosts in parallel; 0 for as many as this machine can connect to


@dataclass(frozen=True, slots=True)
class Proved:
    """The result of a recorded run of proofs, with the figures of its hosts from the last ``PLOT_DAYS`` days."""

    fleet: FleetProof
    ended: RunResults[HostProof]
    past: tuple[PastFigure, ...] = ()

    @property
    def status(self) -> int:
        """The exit status of the run."""
        return self.ended.status


def chosen(target: TargetHost, options: ProveOptions) -> tuple[Proof, ...]:
    """Return the proofs of a host that ``options`` select."""
    names = set(options.names)
    return tuple(
        proof
        for proof in proofs_of(target)
        if (options.level == "full" or proof.level == "quick") and (not names or names & {proof.key, proof.layer})
    )


def due_on(targets: Targets, options: ProveOptions) -> dict[str, tuple[Proof, ...]]:
    """Return host name → proofs that ``options`` select for the host.

    A proof that needs more hosts than this run has is omitted, unless ``options`` names the proof.
    """
    due = {target.name: chosen(target, options) for target in targets}
    able = Counter(proof.key for proofs in due.values() for proof in proofs)
    return {
        name: tuple(proof for proof in proofs if able[proof.key] >= proof.hosts or proof.key in options.names)
        for name, proofs in due.items()
    }


def check_names(targets: Targets, options: ProveOptions) -> None:
    """Raise ``InputError`` if ``options`` has an unknown name of a proof or layer, or selects no proof of any host."""
    every = [proof for target in targets for proof in proofs_of(target)]
    known = sorted({name for proof in every for name in (proof.key, proof.layer)})
    for name in options.names:
        if name not in known:
            raise InputError(f"{name!r} is not a proof of these hosts; {suggestion(name, known)}", "--proofs")
    if not any(chosen(target, options) for target in targets):
        quick = " of the quick level" if options.level == "quick" else ""
        raise InputError(f"no role of these hosts has a proof{quick}", "--hosts")


def prove(run: Run, options: ProveOptions) -> Proved:
    """Run the proofs of each host of ``run``, and record the results.

    Raises ``InputError`` for an unknown proof before any host is contacted. After Ctrl-C, raises ``Interrupted`` with
    the results so far.
    """
    targets = run.targets
    check_names(targets, options)
    began, clock = datetime.now(UTC), time.monotonic()
    own = {"quick": options.level == "quick", "proofs": list(options.names), "baseline": options.baseline}
    with run.begun(LEFT_PROVING, LEADS_ON, own):
        store, each = _store(run), _Each(run)
        due = due_on(targets, options)
        alone = {name: tuple(proof for proof in proofs if proof.hosts == 1) for name, proofs in due.items()}
        several = {name: tuple(proof for proof in proofs if proof.hosts > 1) for name, proofs in due.items()}
        results = each.prove(alone, options.at_once, several)
        if not results.stopped_because:
            results = _together(each, targets, several, results)
        hosts = _judged(targets, results, store, began)
        again: list[tuple[HostProof, ...]] = []
        for _ in range(MOST_AGAIN):
            if results.stopped_because or not (doubts := doubts_of(results, hosts, alone)):
                break
            due = due_again(hosts, doubts, alone, run.emit)
            ran = each.prove(due, options.at_once)
            again.append(tuple(store.clean(host) for host in ran.values))
            results = with_better(results, ran, doubts)
            hosts = _judged(targets, results, store, began, again)
        fleet = FleetProof(
            began.isoformat(timespec="seconds"),
            str(run.roster.path),
            options.level,
            hosts,
            STATISTICS,
            round(time.monotonic() - clock, 3),
            run.id,
        )
        store.add(fleet, baseline=options.baseline)
        _record(run, hosts, results)
        for stop in each.cut:
            stop.ended = Proved(fleet, RunResults(run.record, results, INTERRUPTED), store.past(fleet))
            raise stop
        ended = run.end(results, exit_status(hosts, stopped=bool(results.stopped_because)))
    return Proved(fleet, ended, store.past(fleet))


def _store(run: Run) -> ProofStore:
    return ProofStore(run.roster, run.targets, run.connections.secrets, run.view.warn)


@dataclass(frozen=True)
class _Each:
    run: Run
    cut: list[Interrupted] = field(default_factory=list)  #: Ctrl-C exceptions that occurred while proofs were running

    def prove(
        self,
        due: Mapping[str, tuple[Proof, ...]],
        at_once: int = 0,
        later: Mapping[str, tuple[Proof, ...]] = MappingProxyType({}),
    ) -> Results[HostProof]:
        """Run the proofs ``due`` on at most ``at_once`` hosts in parallel (0: on all hosts).

        The results contain those proofs of ``later`` that cannot run on their host.
        """
        stop = self.run.connections.close
        prove = lambda name: self._prove(name, due[name], later.get(name, ()))  # noqa: E731
        try:
            return on_each(tuple(due), prove, stop=stop, at_once=at_once)
        except Interrupted as cut:
            self.cut.append(cut)
            return cut.results

    def _prove(self, name: str, proofs: tuple[Proof, ...], later: tuple[Proof, ...]) -> HostProof:
        self.run.refuse(name)
        with closing(HostProve(self.run, self.run.targets.by_name[name], proofs, later)) as prove:
            return prove.prove()


def _together(
    each: _Each, targets: Targets, due: Mapping[str, tuple[Proof, ...]], results: Results[HostProof]
) -> Results[HostProof]:
    """Run the proofs ``due`` one after the other. Each proof needs several hosts at the same time."""
    proved = {host.host: host for host in results.values}
    errors = {error.host: error for error in results.errors}
    for key in dict.fromkeys(proof.key for proofs in due.values() for proof in proofs):
        held = {name for name, host in proved.items() if key in {result.proof for result in host.results}}
        of = {name: proof for name in proved if name not in held for proof in due[name] if proof.key == key}
        fewest = max(proof.hosts for proof in of.values()) if of else 0
        if len(of) < fewest:
            sentence = f"the proof needs {fewest} hosts at once, but {len(of)} can run it; select more with --hosts"
            for name, proof in of.items():
                result = ProofResult(key, "not run", sentence, sha256=proof.program.sha256)
                proved[name] = replace(proved[name], results=(*proved[name].results, result))
            continue
        peers = [targets.by_name[name].host.address or name for name in of]
        ran = each.prove({name: (proof.among(peers, index),) for index, (name, proof) in enumerate(of.items())})
        for host in ran.values:
            proved[host.host] = replace(proved[host.host], results=(*proved[host.host].results, *host.results))
        errors.update({error.host: error for error in ran.errors})
        results = replace(results, stopped_because=ran.stopped_because)
        if ran.stopped_because:
            break
    return replace(results, values=tuple(proved.values()), errors=tuple(errors.values()))


def _judged(
    targets: Targets,
    results: Results[HostProof],
    store: ProofStore,
    began: datetime,
    again: Sequence[Collection[HostProof]] = (),
) -> tuple[HostProof, ...]:
    proved = {host.host: host for host in results.values}
    sentences = {error.host: error.sentence for error in results.errors}
    leads = {error.host: error.lead for error in results.errors}
    at = began.isoformat(timespec="seconds")
    hosts = []
    for target in targets:
        why = sentences.get(target.name) or results.stopped_because or "no role of this host has such a proof"
        host = proved.get(target.name) or HostProof(target.name, target.stack.name, at, lead=leads.get(target.name, ""))
        host = store.clean(replace(host, sentence=why) if target.name in sentences or not host.results else host)
        hosts.append(against_baseline(host, store.baseline(target.name), read_max_loss(target.host)))
    return against_peers(hosts, again)


def _record(run: Run, hosts: Collection[HostProof], results: Results[HostProof]) -> None:
    errors = {error.host: error for error in results.errors}
    for host in hosts:
        if host.host in errors:
            run.emit(HostEnded(host.host, result_of(errors[host.host]), host.sentence))
        elif host.status in {"passed", "no GPU"}:
            run.emit(HostEnded(host.host, "as desired"))
        else:
            bad = [result.proof for result in host.results if result.outcome in BAD]
            run.emit(HostEnded(host.host, "failed", ", ".join(bad)))


def exit_status(hosts: Collection[HostProof], *, stopped: bool = False) -> int:
    """Return the exit status of a run of proofs.

    The status is 1 if the run was stopped, a host could not be read or a proof could not be run; else 3 if a proof
    failed; else 0.
    """
    statuses = {host.status for host in hosts}
    if stopped or "unread" in statuses or any(not_run(host) for host in hosts):
        return FAILED
    return DIFFERS if "failed" in statuses else AS_DESIRED


@dataclass(frozen=True)
class ProofsPass:
    """An acceptance check for runs of other commands: a host is accepted if its proofs of a level pass.

    Each host is judged on its own and against its baseline. Proofs that run on several hosts at once are omitted.
    """

    store: ProofStore
    options: ProveOptions

    @classmethod
    def of(cls, run: Run) -> Self | None:
        """Return the check for proofs of the level in the run's request; ``None`` if the request has no level.

        Raises ``InputError`` if no host has a proof of this level, or if a host's largest accepted loss is invalid.
        """
        if not run.request.prove:
            return None
        options = ProveOptions(run.request.prove)
        check_names(run.targets, options)
        for target in run.targets:
            read_max_loss(target.host)
        return cls(_store(run), options)

    def accept(self, run: Run, target: TargetHost, *, locked: bool) -> tuple[Acceptance, ...]:
        """Run the proofs on ``target``, and return the result of each proof.

        Raises ``NotAccepted`` if a proof failed or was not run.
        """
        proofs = tuple(proof for proof in chosen(target, self.options) if proof.hosts == 1)
        if not proofs:
            raise NotAccepted(target.name, f"none of its roles has a {self.options.level} proof")
        clock, baseline = time.monotonic(), self.store.baseline(target.name)
        best = self._prove(run, target, proofs, locked=locked)
        found = against_baseline(best, baseline, read_max_loss(target.host))
        for _ in range(MOST_AGAIN):
            if not (doubts := tuple(proof for proof in proofs if proof.key in doubtful(best, found))):
                break
            best = measured_again(best, self._prove(run, target, doubts, locked=locked))
            found = against_baseline(best, baseline, read_max_loss(target.host))
        took_s = round(time.monotonic() - clock, 3)
        place, level = str(run.roster.path), self.options.level
        self.store.add(FleetProof(found.at, place, level, (found,), STATISTICS, took_s, run.id), baseline=False)
        return accepted(found)

    def _prove(self, run: Run, target: TargetHost, proofs: tuple[Proof, ...], *, locked: bool) -> HostProof:
        try:
            with closing(HostProve(run, target, proofs, locked=locked)) as prove:
                return self.store.clean(prove.prove())
        except Stopped:
            raise
        except HostError as error:
            raise NotAccepted(target.name, f"its proofs could not be run: {error.sentence}") from error


def accepted(host: HostProof) -> tuple[Acceptance, ...]:
    """Return the result of each proof in ``host``. Raises ``NotAccepted`` if a proof failed or was not run."""
    came = tuple(Acceptance(result.proof, result.outcome, result.sentence) for result in host.results)
    bad = sorted((one for one in came if one.outcome in BAD), key=lambda one: BAD.index(one.outcome))
    if not bad:
        return came
    what = f"its proof {bad[0].name} {'failed' if bad[0].outcome == 'failed' else 'was not run'}: {bad[0].sentence}"
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    raise NotAccepted(host.host, what + more, came, exit_status=exit_status((host,)))


def not_run(host: HostProof) -> tuple[str, ...]:
    """Return the keys of the proofs that could not be run on a host."""
    return tuple(result.proof for result in host.results if result.outcome == "not run")
