"""Which role of a host is the most urgent: the one with the most still to come behind it. Pure.

What a host waits for in the end is the longest chain of roles that need each other (the critical path). A role on it
that waits, for a file or for a lock, makes the whole run longer; another one has time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import accumulate


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
