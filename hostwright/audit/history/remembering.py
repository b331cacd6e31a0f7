"""What audits of the last days found of each host's hardware, also of what is gone since."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from hostwright.audit.fleetaudit import GPU_LAYER
from hostwright.audit.hardware.known import REMEMBERED_DAYS, KnownCard, KnownHardware
from hostwright.audit.history.items import CARD, READING, card_of
from hostwright.audit.history.pruning import DAY_S
from hostwright.common.untrusted import Pattern

_COUNT = (READING, GPU_LAYER, "count")
_MEMORY = (READING, "base", "memory")
_NUMBER = Pattern(r"([0-9]{1,9})(?: GiB)?")


def hardware(db: sqlite3.Connection, inventory: int | None, now: datetime) -> Mapping[str, KnownHardware]:
    """What held of each host in the last days: it holds still, or has ended since."""
    rows = db.execute(
        "SELECT host.name, kind, layer, subject.name, have FROM span JOIN host ON host.id = span.host "
        "JOIN subject ON subject.id = span.subject JOIN fact ON fact.id = span.fact "
        "LEFT JOIN audit ON audit.id = span.until WHERE host.inventory = ? AND (until IS NULL OR audit.at >= ?) "
        "AND span.subject IN (SELECT id FROM subject "
        "WHERE kind = ? OR (kind, layer, name) IN (VALUES (?, ?, ?), (?, ?, ?))) ORDER BY span.since DESC",
        (inventory, int(now.timestamp()) - REMEMBERED_DAYS * DAY_S, CARD, *_COUNT, *_MEMORY),
    )
    cards: dict[str, list[KnownCard]] = defaultdict(list)
    most: dict[tuple[str, str], int] = defaultdict(int)
    for host, kind, layer, name, have in rows:
        if kind == CARD:
            cards[host].append(card_of(name, have))
        elif number := _NUMBER.fullmatch(have):
            most[host, layer] = max(most[host, layer], int(number[1]))
    hosts = {*cards, *(host for host, _ in most)}
    return {
        host: KnownHardware(
            cards=tuple(cards[host]), most_gpus=most[host, GPU_LAYER], memory_gib=most[host, _MEMORY[1]]
        )
        for host in hosts
    }
