"""The one order of layers: each after what goes before it, and beyond that as a stack names them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise


def in_sequence(before: Mapping[str, Iterable[str]], named: Sequence[str] = ()) -> tuple[str, ...]:
    """The keys, each after those that go before it; of several that could come next, the first in ``named``.

    One that is not named comes as soon as it can, and so beside what it follows. Raises ``graphlib.CycleError``.
    """
    place = {name: number for number, name in enumerate(named)}
    sorter = TopologicalSorter({name: sorted(before[name]) for name in sorted(before)})
    sorter.prepare()
    ready: set[str] = set()
    order: list[str] = []
    while sorter.is_active():
        ready |= set(sorter.get_ready())
        following = min(ready, key=lambda name: (place.get(name, -1), name))
        ready.remove(following)
        sorter.done(following)
        order.append(following)
    return tuple(order)


def one_order(orders: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The layers of several hosts in one order that is each host's own; as they are first met where hosts disagree."""
    given = [tuple(dict.fromkeys(order)) for order in orders]
    met = tuple(dict.fromkeys(chain.from_iterable(given)))
    before: dict[str, set[str]] = {name: set() for name in met}
    for first, second in chain.from_iterable(map(pairwise, given)):
        before[second].add(first)
    try:
        return in_sequence(before, met)
    except CycleError:  # stacks that name their layers in different orders
        return met
