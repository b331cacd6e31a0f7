"""NVLinks, from the output of ``nvidia-smi nvlink --status``.

It has a line for the card, ``GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-…)``, and one for each of its links,
``Link 0: 25.781 GB/s`` or ``Link 3: <inactive>``. Old versions leave out the UUID. Cards without NVLink may have no
lines for links: nothing is known about theirs. Nor has a card without an active link ("all links are inActive"): it has
as many as the cards of its model beside it, and where those have none, nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hostwright.roles import Gpu, GpuLink

MAX_LINKS = 64  #: of a card; Blackwell has 18
_MAX_LINES = 16_384  #: 64 cards with all their links and as many lines of other kinds
_CARD = re.compile(r"GPU ([0-9]{1,3}):(.*)")
_UUID = re.compile(r"\(UUID: (GPU-[0-9A-Za-z-]{1,64})\)")
_ALL_DOWN = re.compile(r"(?:NVML: ?)?Unable to retrieve NVLink information as all links are inactive", re.IGNORECASE)
_LINK = re.compile(r"Link ([0-9]{1,2}): *(?:([0-9]{1,6}(?:\.[0-9]{1,6})?) ?[GM]B/s|<?inactive>?)", re.IGNORECASE)


def with_links(gpus: Sequence[Gpu], status: str) -> tuple[Gpu, ...]:
    """The cards with their links from ``status``: found by UUID, or by index if there is none."""
    links, down = _read(status)
    known = [replace(gpu, links=links.get(gpu.uuid) or links.get(str(gpu.index), ())) for gpu in gpus]
    most: dict[str, tuple[GpuLink, ...]] = {}
    for gpu in known:
        most[gpu.model] = max(most.get(gpu.model, ()), gpu.links, key=len)
    return tuple(
        replace(gpu, links=tuple(GpuLink(link.number, False) for link in most[gpu.model]))
        if not gpu.links and (gpu.uuid in down or str(gpu.index) in down)
        else gpu
        for gpu in known
    )


def _read(status: str) -> tuple[Mapping[str, tuple[GpuLink, ...]], frozenset[str]]:
    """Links by the card's UUID, or by its index as text; and the cards of which all are inactive."""
    cards: dict[str, dict[int, bool]] = {}
    down: set[str] = set()
    name = ""
    links: dict[int, bool] = {}
    for line in status.splitlines()[:_MAX_LINES]:
        text = line.strip()[:400]
        if card := _CARD.match(text):
            uuid = _UUID.search(card[2])
            name = uuid[1] if uuid else str(int(card[1]))
            links = cards.setdefault(name, {})
        elif name and _ALL_DOWN.match(text):
            down.add(name)
        elif (link := _LINK.fullmatch(text)) and int(link[1]) < MAX_LINKS:
            links[int(link[1])] = bool(link[2]) and float(link[2]) > 0
    by_card = {
        card: tuple(GpuLink(number, states[number]) for number in sorted(states)) for card, states in cards.items()
    }
    return by_card, frozenset(down)
