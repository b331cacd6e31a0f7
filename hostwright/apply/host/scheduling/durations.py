"""How long the steps of a role are expected to take: as long as in past runs of the same stack, else an estimate.

It need not be exact: it decides who goes first, not whether something is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hostwright.apply.host.scheduling.criticalpath import most_urgent_first, remaining_of_steps
from hostwright.plan.model import Plan, RolePlan

# Medians of the first provision of two hosts of the lab, rounded: what is expected of a stack that never was applied.
STEP_S = 0.5  #: a file, a link, a service
LOCKED_S = 2.0  #: a step that holds a lock: dpkg or the loader's cache works on what is there
MIRROR_S = 15.0  #: one that contacts a mirror as well: packages are fetched and installed
UNPACKED_BYTES_PER_S = 10e6  #: of a file of the stack: pip and dpkg make of 100 MB what takes them 10 s

Key = tuple[str, str, int]  #: role, what a change is for, and which of its steps: the first is 0


@dataclass(frozen=True, slots=True)
class Durations:
    """Expected seconds. ``past_s`` are the medians of past runs, ``sizes`` the bytes of the stack's files by name."""

    past_s: Mapping[Key, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def of(self, role: RolePlan) -> tuple[float, ...]:
        """The seconds that each step of a role is expected to take, without what it waits for a lock."""
        numbers: Counter[str] = Counter()
        expected = []
        for change, step in role.steps:
            key = (role.role, change.what, numbers[change.what])
            numbers[change.what] += 1
            size = sum(self.sizes.get(name, 0) for name in change.artifacts) / len(change.steps)
            kind_s = MIRROR_S if step.lock and step.tries > 1 else LOCKED_S if step.lock else STEP_S
            expected.append(self.past_s.get(key, kind_s + size / UNPACKED_BYTES_PER_S))
        return tuple(expected)


@dataclass(frozen=True, slots=True)
class Urgency:
    """What the host must not wait for: ``roles`` are those with steps, the one first whose files and steps come first,
    ``left_s`` how much is left when each of their steps begins (``criticalpath``)."""

    roles: tuple[str, ...] = ()
    left_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, durations: Callable[[], Durations]) -> Urgency:
        """That of a plan. ``durations`` is asked where there is more than one role: one alone waits for nobody."""
        roles = [role for role in plan.roles if role.steps]
        expected = durations() if len(roles) > 1 else Durations()
        steps_s = {role.role: expected.of(role) for role in roles}
        needs = {role.role: role.needs for role in roles}
        order = most_urgent_first(needs, {name: sum(each) for name, each in steps_s.items()})
        return cls(order, remaining_of_steps(needs, steps_s))
