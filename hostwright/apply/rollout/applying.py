"""Applies a goal (the desired states of hosts) to many hosts in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial

from hostwright.apply.events import HostEnded
from hostwright.apply.executors.executor import RunExecutor
from hostwright.apply.host.applying import Accept, HostApply, HostJob
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.rollout.consent import Ask, consent
from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.limits import read_limits
from hostwright.apply.rollout.rollout import NOTHING_CHANGED, Interrupted, Results, roll_out
from hostwright.apply.run import Run, RunResults
from hostwright.common.errors import AS_DESIRED, DIFFERS, FAILED, INTERRUPTED, worst
from hostwright.common.interruption import on_interrupt
from hostwright.plan.model import Plan

LEFT_RUNNING = "interrupted. Jobs that run on the hosts go on; %s re-attaches to them."

#: function that creates the executor of a run that has begun
OpenExecutor = Callable[[Run], RunExecutor]


def apply_goal(
    run: Run,
    goal: Goal = AS_WANTED,
    *,
    saved: Mapping[str, Plan] | None = None,
    ask: Ask | None = None,
    accept: Accept | None = None,
    open_executor: OpenExecutor | None = None,
) -> RunResults[Outcome]:
    """Apply a goal, the state that each host must reach, to the hosts of a run.

    A host whose goal raises a ``HostError`` is not changed, and counts as failed. ``saved`` are plans shown to the
    operator earlier; a host whose plan has changed since then is not changed. ``ask`` is called once, before the run
    begins; each host is then changed exactly as planned, or refused. ``accept`` checks each host that is as desired; if
    it raises ``NotAccepted``, the host has failed. ``open_executor`` creates the executor; the default is threads of
    this process.

    Raises ``InputError`` for invalid limits, and ``Interrupted`` with the results so far after a second Ctrl-C.
    """
    hosts, connections = tuple(run.targets.by_name), run.connections
    limits = read_limits(run.request, len(hosts), most=len(hosts) if open_executor else None)
    run.consent = consent(run, goal, saved=saved or {}, ask=ask)
    with run.begun(NOTHING_CHANGED), run.handing_out():
        work = partial(apply_to, run, goal=goal, accept=accept)
        try:
            with (
                on_interrupt(LEFT_RUNNING % run.again),
                open_executor(run) if open_executor else nullcontext() as executor,
            ):
                results = roll_out(
                    hosts,
                    work,
                    limits=limits,
                    emit=run.emit,
                    stop=executor.cut if executor else connections.close,
                    on_interrupt=run.stop,
                    detach=connections.detach,
                    silent=run.silent,
                    not_responding=connections.not_responding,
                    executor=executor,
                )
        except Interrupted as stop:
            stop.ended = RunResults(run.record, stop.results, INTERRUPTED)
            raise
        return run.end(results, status_of(results))


def apply_to(
    run: Run, name: str, goal: Goal = AS_WANTED, accept: Accept | None = None, ended: frozenset[str] | None = None
) -> Outcome:
    """Apply a goal to the host ``name``, and open and close the connection to the host.

    ``accept`` is as in ``apply_goal``; ``ended`` is as in ``HostJob``. Raises ``HostError`` if the host did not reach
    the goal.
    """
    run.refuse(name)
    target = run.targets.by_name[name]
    agreed = run.consent.plans.get(name)
    host = HostApply(run, HostJob(target, goal.desired(target), goal.departs(target), agreed, accept, ended))
    try:
        outcome = host.apply()
    finally:
        host.close()
    run.emit(HostEnded(name, outcome.word))
    return outcome


def status_of(results: Results[Outcome]) -> int:
    """Return the exit status of a run: 0 if all its hosts are as desired, 3 if a host has work left, 1 for failures.

    Errors of hosts may have exit statuses of their own. The worst status counts.
    """
    if results.errors:
        return worst(error.exit_status for error in results.errors)
    if results.untouched:
        return FAILED
    return DIFFERS if any(outcome.word == "pending" for outcome in results.values) else AS_DESIRED
