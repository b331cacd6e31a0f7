"""Makes a plan from the desired states of a host and its facts.

This module does not contact hosts, read files or use the current time. Equal arguments give equal plans.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from hostwright.common.canonical import Same
from hostwright.common.command import Command
from hostwright.common.errors import NotAnswered
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.facts.memory import Memory
from hostwright.plan.host import drained as hostdrained
from hostwright.plan.host import locks
from hostwright.plan.host.hostfacts import read_host
from hostwright.plan.host.occupancy import AtWork
from hostwright.plan.host.release import RELEASE, read, refusal
from hostwright.plan.model import Change, Facts, Plan, Planned, Probe, Refusal, Resource, ReturnState, RolePlan
from hostwright.stack.ages import aged, day_of
from hostwright.stack.rules import check_host
from hostwright.stack.stack import Stack

_ROLE = re.compile(r"[a-z][a-z0-9_]{0,63}")  #: pattern of a role name in the untrusted release record of a host
#: placeholder, never sent to hosts: its answer is the output of the login shell before each command
LOGIN_SHELL = Probe("# what the login shell prints")
PREFLIGHT = "preflight"  #: role name in a plan for refusals that concern the whole host
NOT_ANSWERED = "not-answered"  #: name of the rule that refuses a host on which a probe hung
_ASKERS = 4  #: maximum number of states to name in the error about a hanging probe


def removal_of(
    desired: Desired, former: Iterable[Desired] = (), staying: Desired | None = None, *, returned: bool = True
) -> Desired:
    """Return the states that remove the roles in ``desired`` from a host, each role before the roles that it needs.

    ``former`` are the desired states of these roles with the host's earlier stacks. ``staying`` are the desired states
    of the host's other roles: their packages and files are kept. With ``returned``, the host's state from before
    Hostwright is restored.
    """
    stacks, wanted = (desired, *former), _wanted(staying) if staying else frozenset[str]()
    going = {role.name: role for stack in reversed(stacks) for role in stack.roles}
    now = [role.name for role in desired.roles]
    ordered = [*(going[name] for name in now), *(role for name, role in going.items() if name not in now)]
    needs = _all_needs(ordered)
    roles = (
        DesiredRole(
            role.name,
            tuple(other.name for other in ordered if role.name in needs[other.name]),
            tuple(dict.fromkeys(_taken_away(role.name, stacks, wanted, returned=returned))),
        )
        for role in reversed(ordered)
    )
    return Desired(desired.host, desired.stack, tuple(roles), removes=True, occupancy=desired.occupancy)


def _taken_away(name: str, stacks: Iterable[Desired], wanted: Set[str], *, returned: bool) -> Iterator[Resource]:
    for role in (role for stack in stacks for role in stack.roles if role.name == name):
        removals = (state for resource in reversed(role.resources) for state in resource.removal())
        left = (state for state in removals if returned or not isinstance(state, ReturnState))
        yield from filter(None, (state.sparing(wanted) for state in left))


def _wanted(staying: Desired) -> frozenset[str]:
    states = (state for role in staying.roles for resource in role.resources for state in resource.removal())
    return frozenset(thing for state in states for thing in state.takes())


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The plan of a host, and information for the operator. A change of the information does not make the plan stale.

    ``busy`` is running work that the plan would disturb. ``losses`` are noun phrases for everything that the plan would
    delete permanently. ``notes`` are sentences about the host, such as about locks. ``provisioned`` is whether the host
    has a release record. ``aged`` are sentences about versions in the stack without fixes or with known
    vulnerabilities.
    """

    plan: Plan
    busy: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    provisioned: bool = True
    losses: tuple[str, ...] = ()
    aged: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        """The host's inventory name."""
        return self.plan.host

    def to_json(self) -> dict[str, Any]:
        """Return the plan and the further information as one JSON object."""
        beside = {"busy": self.busy, "notes": self.notes, "losses": self.losses, "aged": self.aged}
        return {**self.plan.to_json(), **{name: list(texts) for name, texts in beside.items()}}


def plan_host(desired: Desired, facts: Facts, now: datetime | None = None, memory: Memory | None = None) -> HostPlan:
    """Return the plan for a host with these facts, and information for the operator.

    Locks that have expired at ``now`` are ignored. ``memory`` is the run's cache for hosts with equal facts.
    """
    memory = memory or Memory()
    plan = make_plan(desired, facts, memory)
    busy = disturbed(desired, plan, facts).everyone if plan.disturbs else ()
    returning = desired.occupancy.returning(facts) if plan.reboot else ()
    of_states = memory.judged(("notes", Same(desired.roles)), facts, partial(_notes_of_states, desired))
    of_host = off_roles(desired, facts, memory)
    notes = (*_notes_in_time(facts, now, memory), *of_host, *of_states, *returning)
    provisioned = memory.judged("provisioned", facts, _is_provisioned)
    old = () if desired.removes or desired.apart else aged(desired.advisories, desired.versions(), day_of(now))
    return HostPlan(plan, busy, notes, provisioned, losses(desired, plan, facts), tuple(one.sentence for one in old))


def make_plan(desired: Desired, facts: Facts, memory: Memory | None = None) -> Plan:
    """Return the plan that brings a host with these facts to its desired states; empty if the host is as desired.

    Compatibility rules apply only if the plan has changes, and never to a removal. A host is always refused if a newer
    Hostwright wrote its release record, or if a probe of a desired state hung. Refusals come first, under the role
    ``preflight``.

    >>> from hostwright.plan.model import Answer
    >>> from hostwright.resources.files.files import Absent
    >>> from hostwright.stack.stack import Stack
    >>> stack = Stack(name="house", distributions={"debian": ("12",)}, artifacts={})
    >>> motd = DesiredRole("motd", (), (Absent("/etc/motd"),))
    >>> desired = Desired("gpu01", stack, (motd,))
    >>> there = Facts({probe: Answer(0, "") for probe in desired.probes()})
    >>> plan = make_plan(desired, there)
    >>> [(role.role, role.changes[0].what) for role in plan.roles]
    [('preflight', 'distribution'), ('motd', 'file /etc/motd')]
    >>> plan.refusals[0].rpartition("; ")[2]
    'what works: debian 12'
    >>> gone = Facts({probe: Answer(1, "") for probe in desired.probes()})
    >>> make_plan(desired, gone).empty
    True
    """
    memory = memory or Memory()
    needs = memory.kept("needs", Same(desired.roles), lambda: _all_needs(desired.roles))
    roles = (plan_role(role, needs[role.name], facts, memory) for role in desired.roles)
    differing = tuple(role for role in roles if role.changes)
    refused = memory.judged("record", facts, _record_refused) + _unknown(desired, facts)
    if differing and not (desired.removes or desired.apart):
        fits = ("fits", Same(desired.stack), Same(desired.rules), tuple(role.name for role in desired.roles))
        refused += memory.judged(fits, facts, partial(_refusals, desired))
    preflight = (RolePlan(PREFLIGHT, (), refused),) if refused else ()
    return Plan(desired.host, desired.stack.name, (*preflight, *differing))


def losses(desired: Desired, plan: Plan, facts: Facts) -> tuple[str, ...]:
    """Return noun phrases for everything that ``plan`` would delete permanently, each once."""
    roles = {role.role for role in plan.roles}
    states = (state for role in desired.roles if role.name in roles for state in role.resources)
    return tuple(dict.fromkeys(loss for state in states for loss in _lost(state, facts)))


def _lost(state: Resource, facts: Facts) -> tuple[str, ...]:
    try:
        lost = state.losses(facts)
        return lost if lost and isinstance(state.plan(facts), Change) else ()
    except NotAnswered:  # The plan refuses a host with a hanging probe.
        return ()


def disturbing(desired: Desired, facts: Facts) -> tuple[Resource, ...]:
    """Return the states with a planned change that would disturb running work (``Resource.users``)."""
    resources = (resource for role in desired.roles for resource in role.resources)
    return tuple(resource for resource in resources if _hit(resource, facts))


def disturbed(desired: Desired, plan: Plan, facts: Facts) -> AtWork:
    """The running work that ``plan`` would disturb."""
    return at_work(desired, disturbing(desired, facts), facts, reboots=bool(plan.reboot))


def at_work(desired: Desired, resources: Iterable[Resource], facts: Facts, *, reboots: bool) -> AtWork:
    """Return the users of GPUs, and other running work that changes to the states ``resources`` would disturb.

    With ``reboots``, the result includes all work that a reboot would end.
    """
    hit = [name for resource in resources for name in _hit(resource, facts)]
    ended = desired.occupancy.ended(facts) if reboots else ()
    return AtWork(desired.occupancy.users(facts), desired.occupancy.named([*hit, *ended], facts))


def _hit(resource: Resource, facts: Facts) -> tuple[str, ...]:
    """Return the running work that a planned change of ``resource`` would disturb."""
    try:
        users = resource.users(facts)
        planned = resource.plan(facts) if users else None
    except NotAnswered:  # The plan refuses a host with a hanging probe.
        return ()
    return users if isinstance(planned, Change) and planned.disturbs else ()


def notes_on(facts: Facts, now: datetime | None, memory: Memory | None = None) -> tuple[str, ...]:
    """Return sentences about a host's locks, drain record and output of its login shell.

    Locks that have expired at ``now`` are ignored.
    """
    lock, others = (memory or Memory()).judged("who keeps it", facts, _who_keeps_it, (KeyError,))
    if lock is not None and now is not None and lock.expired(now):
        lock = None
    return tuple(str(note) for note in (lock, *others) if note is not None)


def _who_keeps_it(facts: Facts) -> tuple[locks.OperatorLock | None, tuple[object, ...]]:
    shell = facts[LOGIN_SHELL].text if LOGIN_SHELL in facts else None
    return locks.operator_lock(facts), (locks.run_lock(facts), hostdrained.drained(facts), shell)


def _notes_in_time(facts: Facts, now: datetime | None, memory: Memory) -> tuple[str, ...]:
    try:
        return notes_on(facts, now, memory)
    except NotAnswered as error:
        return (f"its locks and drain state are unknown: {error}",)


def _notes_of_states(desired: Desired, facts: Facts) -> tuple[str, ...]:
    resources = (resource for role in desired.roles for resource in role.resources)
    return tuple(note for resource in resources if _answered(resource, facts) for note in resource.notes(facts))


def off_roles(desired: Desired, facts: Facts, memory: Memory | None = None) -> tuple[str, ...]:
    """Return a sentence for each provisioned role that the host's list of roles lacks."""
    if not desired.of_host or desired.removes:
        return ()
    off = partial(_off_roles, desired.of_host)
    return (memory or Memory()).judged(("off", desired.of_host), facts, off)


def _off_roles(of_host: tuple[str, ...], facts: Facts) -> tuple[str, ...]:
    roles = read(facts).get("roles", {}) if RELEASE in facts else {}
    # Earlier versions of Hostwright wrote entries without a hash for roles on every host.
    described = (name for name, entry in roles.items() if isinstance(entry, dict) and entry.get("desired"))
    recorded = (name for name in described if _ROLE.fullmatch(name))
    return tuple(
        f"the role {name} was provisioned here and is no longer in its list of roles; to remove it, run "
        f"{Command('remove', roles=name)}"
        for name in sorted(set(recorded) - set(of_host))
    )


def _all_needs(roles: Sequence[DesiredRole]) -> dict[str, tuple[str, ...]]:
    """Return the direct and the indirect needs of each role, because a role in between may have no changes."""
    needs: dict[str, tuple[str, ...]] = {}
    for role in roles:
        inherited = (name for need in role.needs for name in needs.get(need, ()))
        needs[role.name] = tuple(dict.fromkeys([*role.needs, *inherited]))
    return needs


def plan_role(role: DesiredRole, needs: tuple[str, ...], facts: Facts, memory: Memory) -> RolePlan:
    """Return the plan for ``role`` on a host with these facts. States with a probe that hung are omitted."""

    def planned(resources: Iterable[Resource], known: Facts) -> RolePlan:
        changes = (plan_state(resource, known, memory) for resource in resources)
        return RolePlan(role.name, needs, tuple(change for change in changes if change is not None))

    if facts.late:  # Hanging probes are rare, so the result is not cached.
        return planned((resource for resource in role.resources if _answered(resource, facts)), facts)
    return memory.judged(("role", Same(role), needs), facts, partial(planned, role.resources))


def plan_state(resource: Resource, facts: Facts, memory: Memory) -> Planned | None:
    """Return ``resource.plan(facts)``, cached in ``memory``."""
    return memory.judged(Same(resource), facts, resource.plan)


def _answered(resource: Resource, facts: Facts) -> bool:
    return not facts.late or not any(probe in facts.late for probe in resource.probes())


def _is_provisioned(facts: Facts) -> bool:
    return RELEASE not in facts or bool(read(facts))


def _unknown(desired: Desired, facts: Facts) -> tuple[Refusal, ...]:
    asked: dict[Probe, list[str]] = {}
    for role in desired.roles if facts.late else ():
        for resource in role.resources:
            for probe in resource.probes():
                asked.setdefault(probe, []).append(f"{type(resource).__name__} of {role.name}")
    asked.setdefault(RELEASE, []).append("the release record")
    return tuple(
        _not_answered(probe, asked[probe], answer.late_s) for probe, answer in facts.late.items() if probe in asked
    )


def _not_answered(probe: Probe, askers: Iterable[str], seconds: int) -> Refusal:
    names = list(dict.fromkeys(askers))
    more = [f"{len(names) - _ASKERS} more"] if len(names) > _ASKERS else []
    what = ", ".join([*names[:_ASKERS], *more])
    sentence = f"{what} cannot be probed: {NotAnswered(probe.script, seconds)}; check what hangs on the host"
    return Refusal(what, f"no answer within {seconds} s", "an answer", NOT_ANSWERED, sentence)


def _refusals(desired: Desired, facts: Facts) -> tuple[Refusal, ...]:
    try:
        fitting = read_host(facts)
    except NotAnswered as error:
        sentence = f"cannot check whether the stack fits this host: {error}; check what hangs on the host"
        return (Refusal("host", "no answer", "an answer", NOT_ANSWERED, sentence),)
    misfits = check_host(desired.stack, fitting, desired.rules, {role.name for role in desired.roles})
    nearest = _nearest_stack(desired.stack, desired.fitting(fitting)) if misfits else ""
    ending = f"; the stack {nearest} fits this host" if nearest else ""
    return tuple(Refusal(misfit.rule, "does not fit", "fits", misfit.rule, f"{misfit}{ending}") for misfit in misfits)


def _nearest_stack(wanted: Stack, fitting: Iterable[Stack]) -> str:
    others = (stack for stack in fitting if stack.name != wanted.name)
    best = min(others, key=lambda stack: len({*stack.roles} ^ {*wanted.roles}), default=None)
    return best.name if best else ""


def _record_refused(facts: Facts) -> tuple[Refusal, ...]:
    sentence, rule = refusal(facts), "release-record"
    return (Refusal(rule, "of a newer Hostwright", "of this one", rule, sentence),) if sentence else ()
