"""What one audit says of one host, as the facts that the history keeps. Pure.

A fact that is no more in an audit has ended only where the audit looked. Of a host that could not be read, of a layer
that was left out (``--roles``), of a rule that could not be checked, nothing is known: what was so is so until somebody
sees otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import TypeAdapter

from hostwright.audit.fleetaudit import GPU_LAYER, HostAudit
from hostwright.audit.hardware.gpu import Gpu

STATUS, STACK, LAYER = "status", "stack", "layer"
READING, DEVIATION, FINDING, CARD = "reading", "deviation", "finding", "card"

TEXT_CHARACTERS = 2000  #: of any text of a host that are kept
CARD_CHARACTERS = 300  #: of each value of a card: the four of them are one text
GRAVE, WARNING = "grave", "warning"


class Item(NamedTuple):
    """One fact of a host. It is a tuple, since a fleet's audit makes and hashes a hundred thousand of them.

    ``have`` is what is so: a status, a value, ``grave`` or ``warning``. ``want`` is what the stack wants, ``more`` what
    else makes it another fact: a reading's ``among``, a deviation's ``why``.
    """

    kind: str
    layer: str
    name: str
    have: str
    want: str | None = None
    more: str = ""


_CARD = TypeAdapter(tuple[str, str, str, str])


@dataclass(frozen=True, slots=True)
class Card:
    """What tells one GPU from another."""

    bus: str
    model: str
    serial: str
    uuid: str
    vbios: str

    @classmethod
    def of(cls, bus: str, have: str) -> Card:
        """The inverse of what an item of a card holds."""
        return cls(bus, *_CARD.validate_json(have))


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """One host in one audit: what is so, each with a note that belongs to its beginning, and where it was looked."""

    items: Mapping[Item, str]
    layers: frozenset[str] = frozenset()  #: that were looked at; ``""`` is that of the host itself
    cards: bool = False  #: whether the cards could be read
    unchecked: frozenset[tuple[str, str]] = frozenset()  #: layers and rules of theirs that could not be checked
    partial: frozenset[str] = frozenset()  #: layers of which some states could not be asked for

    def ends(self, item: Item) -> bool:
        """Whether a fact that was so, and is not among the items, has ended; else nothing is known of it."""
        if item.kind == STATUS:
            return True
        if item.layer not in self.layers:
            return False
        match item.kind:
            case "finding":
                return (item.layer, item.name) not in self.unchecked
            case "deviation":
                return item.layer not in self.partial
            case "card":
                return self.cards
        return True


def snapshot(audit: HostAudit) -> HostSnapshot:
    """What an audit of a host has for the history."""
    from hostwright.audit.judging.judging import NOT_ASKED  # it brings all roles with it, which a reader does not need

    if not _could_be_read(audit):
        return HostSnapshot({Item(STATUS, "", "", audit.status): kept(audit.sentence)})
    items = dict(_items(audit))
    return HostSnapshot(
        items,
        frozenset(item.layer for item in items),
        bool(audit.gpus) or any(reading.layer == GPU_LAYER for reading in audit.readings),
        frozenset((skipped.layer, skipped.check) for skipped in audit.not_checked),
        frozenset(skipped.layer for skipped in audit.not_checked if skipped.reason == NOT_ASKED),
    )


def _could_be_read(audit: HostAudit) -> bool:
    """Whether anything is known: a host is ``unread`` too when one layer of it could not be asked for."""
    anything = audit.readings or audit.deviations or audit.findings or audit.gpus
    return audit.status != "unread" or bool(anything) or any(layer.status != "unread" for layer in audit.layers)


def _items(audit: HostAudit) -> Iterator[tuple[Item, str]]:
    yield Item(STATUS, "", "", audit.status), ""
    yield Item(STACK, "", "", kept(audit.stack)), ""
    for layer in audit.layers:
        yield Item(LAYER, kept(layer.name), "", layer.status), ""
    for reading in audit.readings:
        want = None if reading.want is None else kept(reading.want)
        yield Item(READING, kept(reading.layer), kept(reading.name), kept(reading.have), want, kept(reading.among)), ""
    for state in audit.deviations:
        have, want = kept(state.have), kept(state.want)
        yield Item(DEVIATION, kept(state.layer), kept(state.what), have, want, state.why), ""
    for finding in audit.findings:
        evidence = kept("\n".join(finding.evidence))
        yield Item(FINDING, kept(finding.layer), kept(finding.rule), GRAVE if finding.grave else WARNING), evidence
    for gpu in audit.gpus:
        yield Item(CARD, GPU_LAYER, kept(gpu.bus), _card(gpu)), ""


def _card(gpu: Gpu) -> str:
    return json.dumps([kept(value)[:CARD_CHARACTERS] for value in (gpu.model, gpu.serial, gpu.uuid, gpu.vbios)])


def kept(text: str) -> str:
    """A text as it is kept: not more than so much of it, and nothing that is no Unicode."""
    if len(text) <= TEXT_CHARACTERS and text.isascii():
        return text
    return text[:TEXT_CHARACTERS].encode("utf-8", "backslashreplace").decode("utf-8")[:TEXT_CHARACTERS]
