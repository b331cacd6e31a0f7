"""Expected durations of steps, from past runs of the same stack or by estimate, and the order of roles. No I/O.

Work on a host takes as long as the longest chain of roles that need each other (the critical path). So the role with
the longest remaining chain is the most urgent. Estimates suffice, because they affect only the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import accumulate

from hostwright.plan.model import Plan, RolePlan

# The values below are rounded medians of two lab hosts, for a stack that was applied for the first time.
STEP_S = 0.5  #: estimated seconds of a step for a file, a link or a service
LOCKED_S = 2.0  #: estimated seconds of a step that needs a lock, such as dpkg's, and downloads nothing
MIRROR_S = 15.0  #: estimated seconds of a step that installs packages from a mirror under a lock
UNPACKED_BYTES_PER_S = 10e6  #: estimated bytes per second that pip and dpkg unpack (100 MB in 10 s)

Key = tuple[str, str, int]  #: key of a step: role, description of a change, and index of the step in this change


@dataclass(frozen=True, slots=True)
class Durations:
    """The expected durations of steps in seconds.

    ``past_s`` are the medians of past runs; ``sizes`` are the sizes in bytes of the stack's files, by name.
    """

    past_s: Mapping[Key, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def of(self, role: RolePlan) -> tuple[float, ...]:
        """Return the expected seconds of each step of ``role``, without waits for locks."""
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
    """The urgency of each role of a host, and of each step of these roles.

    ``roles`` are the roles with steps, the most urgent first. ``left_s`` has, for each role, the expected remaining
    seconds at the start of each step (``remaining_of_steps``).
    """

    roles: tuple[str, ...] = ()
    left_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, durations: Callable[[], Durations]) -> Urgency:
        """Return the urgency of the roles in ``plan``.

        ``durations`` is called only if ``plan`` has several roles with steps.
        """
        roles = [role for role in plan.roles if role.steps]
        expected = durations() if len(roles) > 1 else Durations()
        steps_s = {role.role: expected.of(role) for role in roles}
        needs = {role.role: role.needs for role in roles}
        order = most_urgent_first(needs, {name: sum(each) for name, each in steps_s.items()})
        return cls(order, remaining_of_steps(needs, steps_s))


def remaining(needs: Mapping[str, Sequence[str]], expected_s: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds from the start of each role until all roles that depend on this role are done.

    The result is the role's own seconds, plus the seconds of the longest chain of roles that depend on the role.
    ``needs`` has, for each role, the roles that must run before; names that are not keys count as done. ``expected_s``
    are the expected seconds of each role, 0 by default. Raises ``graphlib.CycleError`` for cyclic needs.

    >>> needs = {"network": (), "chrony": ("network",), "motd": ("network",)}
    >>> remaining(needs, {"network": 2, "chrony": 10, "motd": 1})
    {'network': 12.0, 'chrony': 10.0, 'motd': 1.0}
    """
    before = {name: set(needs[name]) & set(needs) for name in needs}
    later = dict.fromkeys(needs, 0.0)  #: role → seconds of the longest chain of roles that depend on this role
    left: dict[str, float] = {}
    for name in reversed([*TopologicalSorter(before).static_order()]):
        left[name] = expected_s.get(name, 0.0) + later[name]
        for need in before[name]:
            later[need] = max(later[need], left[name])
    return {name: left[name] for name in needs}


def most_urgent_first(needs: Mapping[str, Sequence[str]], expected_s: Mapping[str, float]) -> tuple[str, ...]:
    """Return the roles in ``needs``, sorted by remaining seconds, the most first. Each role comes after the roles that
    it needs.

    Roles with equal seconds stay in the order of ``needs``.

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
    """Return the remaining seconds at the start of each step of each role, as ``remaining`` does for roles.

    The result is the sum of this step, the later steps of the role, and the longest chain of roles that depend on the
    role. ``steps_s`` are the expected seconds of each step.

    >>> remaining_of_steps({"network": (), "chrony": ("network",)}, {"network": (1, 2), "chrony": (10,)})
    {'network': (13.0, 12.0), 'chrony': (10.0,)}
    """
    whole = {name: sum(steps_s.get(name, ())) for name in needs}
    left = remaining(needs, whole)
    return {
        name: tuple(accumulate(reversed(steps_s.get(name, ())), initial=left[name] - whole[name]))[:0:-1]
        for name in needs
    }
