"""Compare the facts of an earlier and a later audit. All functions are pure.

If the later audit has no value for a status or a reading, the last known value is kept. A deviation, a finding or a GPU
without a later fact no longer exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from hostwright.audit.history.items import CARD, LAYER, READING, STACK, STATUS, Item, card_of

VALUES = frozenset({STATUS, STACK, LAYER, READING})

Key = tuple[str, str, str]  #: kind, layer and name of a fact


@dataclass(frozen=True, slots=True)
class FactChange:
    """The facts about one subject (such as a reading) before and after a change. ``None`` means that no fact exists."""

    before: Item | None
    after: Item | None

    @property
    def item(self) -> Item:
        """The fact after the change; if there is none, the fact before the change."""
        either = self.after or self.before
        if either is None:
            raise ValueError("a change of a fact has neither its old nor its new value")
        return either


def fact_changes(before: Collection[Item], after: Collection[Item]) -> Iterator[FactChange]:
    """Yield the changes of one subject, with the facts ``before`` and ``after``, that are worth reporting.

    If several deviations, findings or GPUs have the same name, earlier and later facts are paired in order.
    """
    ended, begun = sorted(set(before) - set(after), key=_order), sorted(set(after) - set(before), key=_order)
    for old, new in zip_longest(ended, begun):
        change = FactChange(old, new)
        if _worth_reporting(change):
            yield change


def _worth_reporting(change: FactChange) -> bool:
    if change.before is None or change.after is None:
        return change.item.kind not in VALUES
    if change.item.kind in VALUES:
        return change.before.have != change.after.have
    if change.item.kind == CARD:
        before, after = (card_of(item.name, item.have) for item in (change.before, change.after))
        return before.differs(after)
    return (change.before.have, change.before.want) != (change.after.have, change.after.want)


def _order(item: Item) -> tuple[str, str, str]:
    return item.have, item.want or "", item.more


def shown(item: Item | None) -> str | None:
    """Return the value of the fact ``item`` as text, or ``None`` if there is no fact."""
    if item is None or item.kind != CARD:
        return item.have if item else None
    return str(card_of(item.name, item.have))
