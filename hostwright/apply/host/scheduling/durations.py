"""How long the steps of a role are expected to take, as in past runs of the same stack or by an estimate; and which
role is therefore the most urgent: the one with the most still to come behind it. Pure.

A host waits in the end for the longest chain of roles that need each other (the critical path). A role on it that
waits, for a file or for a lock, makes the whole run longer; another one has time. The estimate need not be exact: it
decides who goes first, not whether something is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import accumulate

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
    ``left_s`` how much is left when each of their steps begins (``remaining_of_steps``)."""

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


def remaining(needs: Mapping[str, Sequence[str]], expected_s: Mapping[str, float]) -> dict[str, float]:
    """How much is left when each role begins: its own seconds, and those of the longest chain of roles after it.

    ``needs`` are the roles before each role; those that are no names of this mapping count as done. ``expected_s`` are
    the seconds that each role is expected to take, 0 where nothing is expected. Raises ``graphlib.CycleError`` for
    needs in a circle.

    >>> needs = {"network": (), "chrony": ("network",), "motd": ("network",)}
    >>> remaining(needs, {"network": 2, "chrony": 10, "motd": 1})
    {'network': 12.0, 'chrony': 10.0, 'motd': 1.0}
    """
    before = {name: set(needs[name]) & set(needs) for name in needs}
    later = dict.fromkeys(needs, 0.0)  #: the longest chain after each
    left: dict[str, float] = {}
    for name in reversed([*TopologicalSorter(before).static_order()]):
        left[name] = expected_s.get(name, 0.0) + later[name]
        for need in before[name]:
            later[need] = max(later[need], left[name])
    return {name: left[name] for name in needs}


def most_urgent_first(needs: Mapping[str, Sequence[str]], expected_s: Mapping[str, float]) -> tuple[str, ...]:
    """The roles by what is left when they begin, the most first, and each after those that it needs. Of equal ones the
    order of ``needs`` decides.

    >>> most_urgent_first({"motd": (), "network": (), "chrony": ("network",)}, {"network": 2, "chrony": 10, "motd": 3})
    ('network', 'chrony', 'motd')
    """
    left = remaining(needs, expected_s)
    place = {name: number for number, name in enumerate(needs)}
    order = TopologicalSorter({name: set(needs[name]) & set(needs) for name in needs})
    order.prepare()
    ready: list[str] = []
    done: list[str] = []
    while order.is_active():
        ready = sorted([*ready, *order.get_ready()], key=lambda name: (-left[name], place[name]))
        done.append(ready.pop(0))
        order.done(done[-1])
    return tuple(done)


def remaining_of_steps(
    needs: Mapping[str, Sequence[str]], steps_s: Mapping[str, Sequence[float]]
) -> dict[str, tuple[float, ...]]:
    """How much is left when each step of each role begins: that step, those after it, and the longest chain of roles
    after its role. ``steps_s`` are the seconds that each step is expected to take.

    >>> remaining_of_steps({"network": (), "chrony": ("network",)}, {"network": (1, 2), "chrony": (10,)})
    {'network': (13.0, 12.0), 'chrony': (10.0,)}
    """
    whole = {name: sum(steps_s.get(name, ())) for name in needs}
    left = remaining(needs, whole)
    return {
        name: tuple(accumulate(reversed(steps_s.get(name, ())), initial=left[name] - whole[name]))[:0:-1]
        for name in needs
    }
