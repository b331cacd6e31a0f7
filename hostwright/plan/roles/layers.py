"""The order and short names of layers (the parts of a stack, one per role) in output. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from itertools import count as numbers

WHOLE = 5  #: maximum number of letters of a layer's name that is not shortened
LETTERS = 3  #: number of letters of a layer's name that is shortened


def in_sequence(before: Mapping[str, Iterable[str]], named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the keys of ``before``, each after the keys in its value, otherwise in the order of ``named``.

    Keys that are not in ``named`` are placed as early as possible. Raises ``graphlib.CycleError`` if no order exists.
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
    """Return the layers of several ``orders`` in one order that agrees with all of them.

    If no such order exists, return the layers in order of first occurrence.
    """
    given = [tuple(dict.fromkeys(order)) for order in orders]
    met = tuple(dict.fromkeys(chain.from_iterable(given)))
    before: dict[str, set[str]] = {name: set() for name in met}
    for first, second in chain.from_iterable(map(pairwise, given)):
        before[second].add(first)
    try:
        return in_sequence(before, met)
    except CycleError:  # Stacks may list layers in contradictory orders.
        return met


def short_names(names: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return layer → unique short name: the one in ``given``, else letters of the layer's name.

    >>> short_names(["base", "monitoring", "money_printer", "storage"], {"storage": "disk"})
    {'base': 'base', 'monitoring': 'mon', 'money_printer': 'moe', 'storage': 'disk'}
    """
    whole = tuple(dict.fromkeys(names))
    found: dict[str, str] = {}
    # Names with a given short form come first, since no other name may take that form.
    for name in sorted(whole, key=lambda name: (not given.get(name), len(name) > WHOLE)):
        start = name[: LETTERS - 1]
        forms = (given.get(name), name if len(name) <= WHOLE else None, *(start + letter for letter in name[2:]), name)
        numbered = (f"{start}{number}" for number in numbers(2))
        found[name] = next(form for form in chain(forms, numbered) if form and form not in found.values())
    return {name: found[name] for name in whole}
