"""Convert the audit of one host into facts for the history. All functions are pure.

An earlier fact ends only if an audit checked this fact and did not find it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

from hostwright.audit.fleetaudit import GPU_LAYER, HostAudit
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.hardware.known import KnownCard, known_card
from hostwright.common.input.adapter import adapter

STATUS, STACK, LAYER = "status", "stack", "layer"
READING, DEVIATION, FINDING, CARD = "reading", "deviation", "finding", "card"

TEXT_CHARACTERS = 2000  #: maximum number of characters to keep of a text from a host
#: maximum number of characters to keep of one value of a GPU
CARD_CHARACTERS = 150
GRAVE, WARNING = "grave", "warning"


class Item(NamedTuple):
    """One fact about a host. It is a tuple for speed: the audit of a fleet creates a hundred thousand facts.

    ``have`` is the value: a status, a value that was read, ``grave`` or ``warning``. ``more`` distinguishes facts with
    the same value: a reading's ``among``, a deviation's ``why``.
    """

    kind: str
    layer: str
    name: str
    have: str
    want: str | None = None
    more: str = ""


def card_of(bus: str, have: str) -> KnownCard:
    """Parse the address ``bus`` and the value ``have`` of a history item into the identity of a GPU.

    Older history files have only the first four fields.
    """
    return KnownCard(bus, *adapter(tuple[str, ...]).validate_json(have)[: len(fields(KnownCard)) - 1])


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """The facts about one host in one audit, each with a note, and the scope of the audit."""

    items: Mapping[Item, str]
    layers: frozenset[str] = frozenset()  #: names of the audited layers. An empty name stands for the host itself.
    cards: bool = False  #: whether the audit could read the host's GPUs
    faulty: frozenset[str] = frozenset()  #: PCI addresses of GPUs that the driver lists but cannot identify
    #: pairs of a layer and the name of a rule that could not be checked
    unchecked: frozenset[tuple[str, str]] = frozenset()
    partial: frozenset[str] = frozenset()  #: layers in which some states could not be probed

    def ends(self, item: Item) -> bool:
        """Return whether this audit shows that the earlier fact ``item`` has ended. Return ``False`` if the audit did
        not check this fact.
        """
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
                return self.cards and item.name not in self.faulty
        return True


def snapshot(audit: HostAudit) -> HostSnapshot:
    """Convert ``audit``, the audit of one host, into facts for the history."""
    from hostwright.audit.judging.judging import (
        unprobed,  # This import loads all roles, which readers of the history do not need.
    )

    if not _could_be_read(audit):
        return HostSnapshot({Item(STATUS, "", "", audit.status): kept(audit.sentence)})
    items = dict(_items(audit))
    return HostSnapshot(
        items,
        frozenset(item.layer for item in items),
        bool(audit.gpus) or any(reading.layer == GPU_LAYER for reading in audit.readings),
        frozenset(kept(gpu.bus) for gpu in audit.gpus if gpu.fault),
        frozenset((skipped.layer, skipped.check) for skipped in audit.not_checked),
        frozenset(skipped.layer for skipped in audit.not_checked if unprobed(skipped)),
    )


def _could_be_read(audit: HostAudit) -> bool:
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
    for gpu in (gpu for gpu in audit.gpus if not gpu.fault):
        yield Item(CARD, GPU_LAYER, kept(gpu.bus), _card(gpu)), ""


def _card(gpu: Gpu) -> str:
    return json.dumps([kept(value)[:CARD_CHARACTERS] for value in astuple(known_card(gpu))[1:]])


def kept(text: str) -> str:
    """Return ``text`` in the form that the history stores: limited in length, and valid Unicode."""
    if len(text) <= TEXT_CHARACTERS and text.isascii():
        return text
    return text[:TEXT_CHARACTERS].encode("utf-8", "backslashreplace").decode("utf-8")[:TEXT_CHARACTERS]
