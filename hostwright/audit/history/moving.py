"""From what was so and what is so to what has changed. Pure.

A value (a status, a reading) that is not there was not asked for: what it was before is what it was last. A thing (a
deviation, a finding, a card) comes and goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hostwright.audit.history.items import CARD, LAYER, READING, STACK, STATUS, Card, Item

VALUES = frozenset({STATUS, STACK, LAYER, READING})

Key = tuple[str, str, str]  #: kind, layer and name


@dataclass(frozen=True, slots=True)
class FactChange:
    """One subject's facts, before and after; ``None`` where there was none."""

    before: Item | None
    after: Item | None

    @property
    def item(self) -> Item:
        """Either of them, for its kind, layer and name."""
        either = self.after or self.before
        if either is None:
            raise ValueError("nothing moved to nothing")
        return either


def moves(before: Collection[Item], after: Collection[Item]) -> Iterator[FactChange]:
    """The moves of one subject that are worth telling. Several things of the same name are paired in their order."""
    ended, begun = sorted(set(before) - set(after), key=_order), sorted(set(after) - set(before), key=_order)
    for number in range(max(len(ended), len(begun))):
        move = FactChange(
            ended[number] if number < len(ended) else None, begun[number] if number < len(begun) else None
        )
        if _worth(move):
            yield move


def _worth(move: FactChange) -> bool:
    """Whether somebody would call it a change: not so if only the stack's or the other hosts' part of it moved."""
    if move.before is None or move.after is None:
        return move.item.kind not in VALUES
    if move.item.kind in VALUES:
        return move.before.have != move.after.have
    return (move.before.have, move.before.want) != (move.after.have, move.after.want)


def _order(item: Item) -> tuple[str, str, str]:
    return item.have, item.want or "", item.more


def shown(item: Item | None) -> str | None:
    """The value of a fact in words."""
    if item is None or item.kind != CARD:
        return item.have if item else None
    card = Card.of(item.name, item.have)
    known = {"serial": card.serial, "": card.uuid, "VBIOS": card.vbios}
    return ", ".join([card.model or "unknown", *(f"{name} {value}".strip() for name, value in known.items() if value)])
