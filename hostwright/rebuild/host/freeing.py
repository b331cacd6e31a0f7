"""Draining of a host by the site's command, before its power is cut or its disks are wiped.

The host's locks and users are checked again first. Earlier checks may be hours old, because hosts wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from hostwright.apply import events
from hostwright.apply.disturb import draining, usage
from hostwright.common.errors import Locked, Refused, Stopped
from hostwright.plan.host import drained as hostdrained
from hostwright.plan.host import locks
from hostwright.plan.model import Facts
from hostwright.plan.observing import ask
from hostwright.rebuild.host.clock import Phases
from hostwright.rebuild.host.tools import Tools


def refuse_locked(tools: Tools, facts: Facts) -> None:
    """Raise ``Locked`` if an operator has locked the host or another run is changing it, according to ``facts``."""
    name = tools.target.name
    sentence, held = locks.refusal(facts, datetime.now(UTC)), locks.living(facts, tools.run.holder(name))
    if sentence or held is not None:
        raise Locked(name, sentence or locks.held_by(held))


def probe_again(tools: Tools, phases: Phases) -> Facts:
    """Return new facts about the locks, runs and users of the host.

    Raises ``Locked`` if the host is locked or another run is changing it, and ``HostError`` if it does not answer.
    """
    with phases.phase("diagnose"), tools.connect() as shell:
        facts = usage.probe_usage(shell, tools.target.occupancy)
    refuse_locked(tools, facts)
    return facts


def free(tools: Tools, phases: Phases, effect: str, *, boots: bool) -> None:
    """Drain the host with the site's command, if needed and possible, and wait until the host is idle.

    ``effect`` describes the caller's next action, such as "cuts its power". ``boots`` is whether the installed system
    starts again after this action. Raises ``Locked``, ``Refused`` (users or jobs forbid the action) or ``HostError``
    before any work was disturbed.
    """
    facts, request, name = probe_again(tools, phases), tools.run.request, tools.target.name
    left = usage.jobs_left(facts)
    if left and not request.force:
        raise Refused(name, f"{left}, and this rebuild {effect}; wait until this work has ended, or pass --force")
    hit = tools.target.occupancy.at_work(facts, boots=boots)
    decision = draining.decide(effect, hit, hooks=tools.hooks, drain=request.drain, force=request.force)
    if decision.refusal:
        raise Refused(name, decision.refusal)
    if request.force and (sentence := draining.overruled(effect, hit)):
        tools.run.emit(events.Note(name, sentence))
    if decision.drain:
        drain(tools, phases, effect, wait=lambda: _everyone(tools, boots=boots))


def drain(tools: Tools, phases: Phases, reason: str, *, wait: Callable[[], tuple[str, ...]] | None = None) -> None:
    """Run the site's drain command, if any, and call ``wait`` until no users remain.

    Raises ``HostError`` if the command fails, or if users remain after the command's time limit.
    """
    hooks = tools.hooks
    if hooks is None:
        return
    with phases.phase("drain"):
        with tools.connect() as shell:
            draining.drain(shell, hooks, context(tools, reason), tools.run.emit)
        if wait is not None:
            draining.wait_until_idle(tools.target.name, wait, hooks.timeout_s, tools.run.emit)


def keep_away(tools: Tools, phases: Phases, reason: str) -> None:
    """Drain the host if it is not yet drained. Raises ``HostError`` if the drain command fails."""
    with tools.connect() as shell:
        facts = ask(shell, (hostdrained.DRAINED,), timeout_s=usage.PROBE_TIMEOUT_S)
    if hostdrained.drained(facts) is None:
        drain(tools, phases, reason)


def context(tools: Tools, reason: str) -> draining.Context:
    """Return the values that the site's drain and return commands receive."""
    return draining.Context(tools.target.name, reason, tools.run.id, tools.run.stamp.operator)


def _everyone(tools: Tools, *, boots: bool) -> tuple[str, ...]:
    if tools.run.stopping.is_set():
        raise Stopped(
            tools.target.name,
            "stopped by the operator while waiting for work on the host to end; the host is still drained",
        )
    occupancy = tools.target.occupancy
    with tools.connect() as shell:
        facts = ask(shell, occupancy.probes, timeout_s=usage.PROBE_TIMEOUT_S)
    return occupancy.at_work(facts, boots=boots).everyone
