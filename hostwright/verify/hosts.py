"""Verifies many hosts in parallel, as one recorded run."""

from __future__ import annotations

import time
from dataclasses import replace

from hostwright.apply.events import Explained, HostEnded
from hostwright.apply.host.explaining import units_named
from hostwright.apply.rollout.rollout import NOTHING_CHANGED, Interrupted, on_each, result_of
from hostwright.apply.run import Run, RunResults
from hostwright.common.command import Command
from hostwright.common.errors import AS_DESIRED, FAILED, INTERRUPTED, Examination, HostError, HostwrightError, Stopped
from hostwright.common.untrusted import guarded
from hostwright.plan.targets import TargetHost
from hostwright.verify.checking import Checks
from hostwright.verify.verdict import Verdict

LEADS_ON = f"; {Command('runs.show', run='{run}')} shows the results"


def verify(run: Run) -> RunResults[Verdict]:
    """Verify each host of a run: its plan must be empty, and all checks of its layers must pass."""
    by_name, connections = run.targets.by_name, run.connections
    roles = dict.fromkeys(role for target in run.targets for role in target.roles)
    with run.begun(NOTHING_CHANGED, LEADS_ON), Checks(run.roster, roles, hosts=len(by_name)) as checks:

        def verified(name: str) -> Verdict:
            target = by_name[name]
            host_plan = connections.plan(target, run.emit)
            began_s = time.monotonic()
            found = checks.of(target, connections.password(target))
            verdict = Verdict(host_plan, found, took_s=time.monotonic() - began_s)
            for check in verdict.failed_checks:
                what = f"{check.role}: {check.sentence.splitlines()[0]}"
                run.emit(Explained(name, what, check.why, (check.finding,) if check.finding else ()))
            return _examined(run, target, verdict) if verdict.failed_checks else verdict

        ended: set[str] = set()

        def tell(result: Verdict | HostError) -> None:
            ended.add(result.host)
            run.emit(_end_of(result))

        try:
            results = on_each(tuple(by_name), verified, stop=connections.close, on_result=tell)
        except Interrupted as stop:
            for left in (*stop.results.values, *stop.results.errors):
                if left.host not in ended:
                    tell(left)
            stop.ended = RunResults(run.record, stop.results, INTERRUPTED)
            raise
        good = not results.errors and all(verdict.passed for verdict in results.values)
        return run.end(results, AS_DESIRED if good else FAILED)


def _examined(run: Run, target: TargetHost, verdict: Verdict) -> Verdict:
    try:
        with guarded(target.name), run.connections.connect(target) as shell:
            units = units_named("\n".join(check.why for check in verdict.failed_checks))
            found = run.roster.knowledge.examine(target, shell, units, run.redactor.text)
    except Stopped:
        raise
    except HostwrightError as error:
        sentence = error.sentence if isinstance(error, HostError) else str(error)
        found = Examination((), f"known problems could not be checked on the host: {sentence}")
    if found is not None:
        run.emit(Explained(target.name, "after the failure", found.sentence, found.findings))
    return replace(verdict, examination=found)


def _end_of(result: Verdict | HostError) -> HostEnded:
    if isinstance(result, HostError):
        return HostEnded(result.host, result_of(result), result.sentence)
    if result.passed:
        return HostEnded(result.host, "as desired")
    unchecked = (f"{role} (not checked)" for role in result.unchecked_roles)
    return HostEnded(result.host, "failed", ", ".join([*result.failed_roles, *unchecked]))
