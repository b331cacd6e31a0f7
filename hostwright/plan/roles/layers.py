"""The one order of layers, each after what goes before it and beyond that as a stack names them; short names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from itertools import count as numbers

WHOLE = 5  #: letters of a name that is short enough
LETTERS = 3  #: of the short form of a longer one


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


def short_names(names: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """For each layer a name of few letters that no other of them has: the ``given`` one, else its first letters.

    >>> short_names(["base", "monitoring", "money_printer", "storage"], {"storage": "disk"})
    {'base': 'base', 'monitoring': 'mon', 'money_printer': 'moe', 'storage': 'disk'}
    """
    whole = tuple(dict.fromkeys(names))
    found: dict[str, str] = {}
    for name in sorted(whole, key=lambda name: (not given.get(name), len(name) > WHOLE)):  # those that are fixed first
        start = name[: LETTERS - 1]
        forms = (given.get(name), name if len(name) <= WHOLE else None, *(start + letter for letter in name[2:]), name)
        numbered = (f"{start}{number}" for number in numbers(2))
        found[name] = next(form for form in chain(forms, numbered) if form and form not in found.values())
    return {name: found[name] for name in whole}
