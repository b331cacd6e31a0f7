"""Compute results once for all hosts with equal facts, even if names, release records and reading times differ.

A result that depends on the time is replaced by ``OPEN``, and is then computed for each host. All data that a
computation reads is recorded (``plan.facts.memory``), to find the data on which the result depends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TypeVar

from hostwright.audit.failures import Catalogue, FailureRule
from hostwright.audit.fleetaudit import GPU_LAYER, NotChecked, Reading
from hostwright.audit.found.reading import readings_found
from hostwright.audit.hardware.gpu import Gpu, GpuEvent
from hostwright.audit.judging.audited import AuditScope
from hostwright.audit.judging.context import CHANGES, NOW, AuditContext, NotedContext, Unread
from hostwright.audit.readings.host import readings
from hostwright.common.canonical import Same
from hostwright.common.errors import Finding, NotAnswered
from hostwright.plan.desired import DesiredRole
from hostwright.plan.facts.memory import Memory
from hostwright.plan.facts.noted import Notes
from hostwright.plan.model import Facts, Planned, Resource
from hostwright.plan.planning import plan_state
from hostwright.plan.roles.auditvalue import AuditValue

T = TypeVar("T")

#: number of recorded results after which recording stops if none was reused (our choice). Recording a result doubles
#: the time of its computation.
_TRIES = 4
EVIDENCE_LINES = 5  #: maximum number of lines of evidence to keep for a finding
NOT_ASKED = "not probed: the audit ran without sudo, or these facts are older than this state"


@dataclass(frozen=True, slots=True)
class Differing:
    """The changes that a role requires on a host, and the states of the role that could not be checked."""

    changes: tuple[Planned, ...] = ()
    states: tuple[Resource, ...] = ()  #: desired state for each change, in the order of ``changes``
    not_checked: tuple[NotChecked, ...] = ()


def differing(role: DesiredRole, memory: Memory, facts: Facts) -> Differing:
    """Plan the changes that ``role`` requires. States whose probes were not run are reported as not checked."""
    found: list[tuple[Planned, Resource]] = []
    skipped: dict[str, str] = {}
    for resource in role.resources:
        if not all(probe in facts for probe in resource.probes()):
            skipped.setdefault(type(resource).__name__, _why_not(resource, facts))
        elif change := plan_state(resource, facts, memory):
            found.append((change, resource))
    not_checked = (NotChecked(role.name, name, reason) for name, reason in skipped.items())
    return Differing(tuple(change for change, _ in found), tuple(resource for _, resource in found), tuple(not_checked))


class Open(Enum):
    """The type of ``OPEN``, which replaces a result that depends on the time and must be computed for each host."""

    OPEN = "open"


OPEN = Open.OPEN


@dataclass(frozen=True, slots=True)
class Alike:
    """The results that all hosts with equal facts share. A result that depends on the time is ``OPEN``."""

    states: Mapping[str, Differing]  #: differences by name of the role
    changes: Mapping[str, tuple[Planned, ...]]  #: planned changes by name of the role
    readings: tuple[Reading, ...] | Open
    #: result of each rule in order, or the rule if the result depends on time
    rules: tuple[Finding | NotChecked | FailureRule, ...]
    gpus: tuple[Gpu, ...] | Open
    events: tuple[GpuEvent, ...] | Open

    def found(self, ctx: AuditContext, known: Catalogue) -> tuple[Finding | NotChecked, ...]:
        """Return the results of all rules for the host ``ctx``. Rules that depend on the time are evaluated now."""
        each = (judge_rule(known, rule, ctx) if isinstance(rule, FailureRule) else rule for rule in self.rules)
        return tuple(found for found in each if found is not None)


def alike(ctx: AuditContext, looks_at: AuditScope) -> Alike:
    """Compute the results that all hosts with the facts of ``ctx`` share. ``ctx`` has no planned changes yet."""
    same = (Same(looks_at), Same(ctx.facts), ctx.known, ctx.minute)
    judged = partial(ctx.judged, ("alike", same[0]), partial(_alike, ctx, looks_at), tries=_TRIES)
    return ctx.memory.kept("alike", same, judged)


def _alike(whole: AuditContext, looks_at: AuditScope, noted: AuditContext) -> Alike:
    memory, facts = whole.memory, noted.facts
    states = {
        role.name: memory.judged(("states", Same(role)), facts, partial(differing, role, memory))
        for role in whole.desired.roles
    }
    changes = {name: differs.changes for name, differs in states.items()}
    steady = _Steady(replace(whole, changes=changes), noted)
    layers = (*changes, GPU_LAYER) if looks_at.judges_cards(facts) else tuple(changes)
    rules = (rule for rule in looks_at.rules.signed if rule.sign and rule.sign.layer in layers)
    found = [(rule, steady.judge(partial(judge_rule, looks_at.rules, rule))) for rule in rules]
    return Alike(
        states,
        changes,
        steady.judge(partial(all_readings, looks_at)),
        tuple(rule if result is OPEN else result for rule, result in found if result is not None),
        steady.judge(gpus_of),
        steady.judge(events_of),
    )


class _Steady:
    def __init__(self, ctx: AuditContext, noted: AuditContext):
        self._look, self._noted = ctx, noted

    def judge(self, work: Callable[[AuditContext], T]) -> T | Open:
        if not isinstance(self._noted, NotedContext):
            return work(self._look)
        notes: Notes = {}
        result = work(self._look.noting(notes))
        if NOW in notes:
            return OPEN
        for question in notes:
            # The planned changes depend only on facts, and each read of facts is recorded anyway.
            if question != CHANGES:
                self._noted.token(question)
        return result


def judge_rule(known: Catalogue, rule: FailureRule, ctx: AuditContext) -> Finding | NotChecked | None:
    """Return the result of ``rule`` on a host; ``None`` if the host does not have the failure."""
    if rule.sign is None:
        return None
    try:
        evidence = ctx.judged((Same(known), Same(rule)), partial(_evidence, known, rule))
    except (Unread, NotAnswered) as error:
        return NotChecked(rule.sign.layer, rule.name, str(error))
    return rule.finding(evidence) if evidence else None


def _evidence(known: Catalogue, rule: FailureRule, ctx: AuditContext) -> tuple[str, ...]:
    return tuple(_first(known.evidence(rule, ctx)))


def _first(lines: Iterable[str]) -> list[str]:
    evidence = list(lines)
    more = len(evidence) - EVIDENCE_LINES
    return [*evidence[:EVIDENCE_LINES], f"… and {more} more"] if more > 0 else evidence


def readings_of(values: tuple[AuditValue, ...], ctx: AuditContext) -> tuple[Reading, ...]:
    """Return the readings of ``values`` on a host."""
    return ctx.judged(("readings", Same(values)), partial(readings, values=values))


def all_readings(looks_at: AuditScope, ctx: AuditContext) -> tuple[Reading, ...]:
    """Return the readings of all values that a host's roles define, and of software found in any layer of the host."""
    return (*readings_of(looks_at.target.audit_values, ctx), *readings_found(looks_at.finders, ctx))


def gpus_of(ctx: AuditContext) -> tuple[Gpu, ...]:
    """Return the GPUs of a host; empty if no role's interface can read GPUs."""
    try:
        return ctx.gpus
    except (Unread, NotAnswered):
        return ()


def events_of(ctx: AuditContext) -> tuple[GpuEvent, ...]:
    """Return the recent kernel log events of a host's GPUs; empty if no role's interface can read these events."""
    try:
        return ctx.gpu_events
    except (Unread, NotAnswered):
        return ()


def _why_not(resource: Resource, facts: Facts) -> str:
    late = [
        str(NotAnswered(probe.script, facts.late[probe].late_s)) for probe in resource.probes() if probe in facts.late
    ]
    return late[0] if late else NOT_ASKED
