"""Read from the database the history of one host, and the times at which current statuses and problems began."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter

from hostwright.audit.fleetaudit import Status
from hostwright.audit.history.hosthistory import HistoryEvent, HostHistory
from hostwright.audit.history.items import CARD, DEVIATION, FINDING, STATUS, Item
from hostwright.audit.history.moving import VALUES, FactChange, fact_changes, shown
from hostwright.audit.reports.ages import Ages
from hostwright.common.places import place_of

_LAYERS, _KEPT = TypeAdapter(list[str]), TypeAdapter(list[int])

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """The period during which a fact about a host held: from the audit ``since`` to the audit ``until``.

    ``until`` is ``None`` while the fact holds.
    """

    subject: int
    since: int
    until: int | None
    note: str
    item: Item


def inventory_id(db: sqlite3.Connection, inventory: str | Path) -> int | None:
    """Return the database ID of ``inventory``; ``None`` if no audit of the inventory is recorded."""
    row = db.execute("SELECT id FROM inventory WHERE place = ?", (place_of(inventory),)).fetchone()
    return row[0] if row else None


def moment(seconds: float) -> datetime:
    """Convert ``seconds`` since 1970 to a UTC datetime."""
    return EPOCH + timedelta(seconds=seconds)


def host_history(db: sqlite3.Connection, inventory: int | None, host: str, since: datetime | None) -> HostHistory:
    """Return the history of ``host`` since the time ``since``; for ``None``, the whole history."""
    query = "SELECT id, first, last FROM host WHERE inventory = ? AND name = ?"
    row = db.execute(query, (inventory, host)).fetchone()
    if row is None:
        return HostHistory(host)
    number, first, last = row
    spans = list(_spans(db, number))
    (pruned,) = db.execute("SELECT audit FROM pruned").fetchone()
    changes = [change for change in _changes(spans, first) if change[0] > pruned]
    times = _times(db, number, {first, last, *(audit for audit, _, _ in changes)})
    events = (_event(times[audit], change, note) for audit, change, note in changes)
    status = next((span.item.have for span in spans if span.item.kind == STATUS and span.until is None), None)
    return HostHistory(
        host,
        cast("Status | None", status),
        times[first],
        times[last],
        tuple(event for event in events if since is None or event.at >= since),
    )


def _spans(db: sqlite3.Connection, host_id: int) -> Iterator[Span]:
    rows = db.execute(
        "SELECT span.subject, since, until, note, kind, layer, name, have, want, more FROM span "
        "JOIN fact ON fact.id = span.fact JOIN subject ON subject.id = span.subject WHERE host = ? "
        "ORDER BY span.subject, since",
        (host_id,),
    )
    return (Span(row[0], row[1], row[2], row[3] or "", Item(*row[4:])) for row in rows)


def _changes(spans: Iterable[Span], first: int) -> list[tuple[int, FactChange, str]]:
    by_subject: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        by_subject[span.subject].append(span)
    first_card = min((span.since for span in spans if span.item.kind == CARD), default=0)
    changes = [
        (audit, change, note)
        for own in by_subject.values()
        for audit, change, note in _of_subject(own, first)
        if not (change.item.kind == CARD and audit == first_card)
    ]
    return sorted(changes, key=lambda change: (change[0], change[1].item[:3] != (STATUS, "", ""), change[1].item[:3]))


def _of_subject(spans: list[Span], first: int) -> Iterator[tuple[int, FactChange, str]]:
    begun: dict[int, dict[Item, str]] = defaultdict(dict)
    ended: dict[int, set[Item]] = defaultdict(set)
    for span in spans:
        begun[span.since][span.item] = span.note
        if span.until is not None:
            ended[span.until].add(span.item)
    now: set[Item] = set()
    last: set[Item] = set()
    for audit in sorted({*begun, *ended}):
        notes = begun.get(audit, {})
        now = now - ended.get(audit, set()) | notes.keys()
        if audit == first and spans[0].item.kind == STATUS:
            yield from ((audit, FactChange(None, item), note) for item, note in notes.items())
        for change in fact_changes(last, now):
            yield audit, change, notes.get(change.after, "") if change.after else ""
        last = now or (last if spans[0].item.kind in VALUES else now)


def _times(db: sqlite3.Connection, host_id: int, audits: Iterable[int]) -> dict[int, datetime]:
    rows = db.execute(
        "SELECT audit.id, audit.at + coalesce(after_s, 0) FROM audit "
        "LEFT JOIN seen ON seen.audit = audit.id AND seen.host = ? "
        "WHERE audit.id IN (SELECT value FROM json_each(?))",
        (host_id, json.dumps(sorted(audits))),
    )
    return {audit: moment(at) for audit, at in rows}


def _event(at: datetime, change: FactChange, note: str) -> HistoryEvent:
    item = change.item
    remark = item.more if item.kind == DEVIATION else note
    return HistoryEvent(
        at, item.kind, item.layer, item.name, shown(change.before), shown(change.after), item.want, remark
    )


def latest(db: sqlite3.Connection, inventory: int | None) -> dict[str, str]:
    """Return host → status in the host's last audit."""
    rows = db.execute(
        "SELECT host.name, seen.status FROM host JOIN seen ON seen.audit = host.last AND seen.host = host.id "
        "WHERE inventory = ?",
        (inventory,),
    )
    return dict(rows.fetchall())


def ages(db: sqlite3.Connection, inventory: int | None) -> Ages:
    """Return the times at which the current status, deviations and findings of each host began.

    A deviation or finding may have had other values since that time.
    """
    rows = db.execute(
        "SELECT host.name, kind, layer, subject.name, span.host, subject, since FROM span "
        "JOIN host ON host.id = span.host JOIN subject ON subject.id = span.subject "
        "WHERE until IS NULL AND inventory = ? "
        "AND span.subject IN (SELECT id FROM subject WHERE kind IN (?, ?, ?))",
        (inventory, STATUS, DEVIATION, FINDING),
    ).fetchall()
    times: dict[int, datetime] = {}
    oldest: dict[tuple[str, str, str], datetime] = {}
    for host, kind, layer, name, number, subject, since in rows:
        began = since if kind == STATUS else _beginning(db, number, subject, since)
        if began not in times:
            (at,) = db.execute("SELECT at FROM audit WHERE id = ?", (began,)).fetchone()
            times[began] = moment(at)
        key = (host, kind, {STATUS: "", DEVIATION: f"{layer} {name}"}.get(kind, name))
        oldest[key] = min(times[began], oldest.get(key, times[began]))
    return oldest


def _beginning(db: sqlite3.Connection, host_id: int, subject: int, since: int) -> int:
    query = "SELECT min(since) FROM span WHERE host = ? AND subject = ? AND until = ? AND since < until"
    while (before := db.execute(query, (host_id, subject, since)).fetchone()[0]) is not None:
        since = before
    return since


def state(db: sqlite3.Connection, audit: int) -> Mapping[str, frozenset[Item]]:
    """Return host → the facts that the audit with the number ``audit`` found."""
    hosts = db.execute(
        "SELECT host.id, host.name, layers, kept FROM seen JOIN host ON host.id = seen.host "
        "JOIN scope ON scope.id = seen.scope WHERE audit = ?",
        (audit,),
    ).fetchall()
    return {name: frozenset(_seen(db, audit, host, _LAYERS.validate_json(layers), _KEPT.validate_json(kept)))
            for host, name, layers, kept in hosts}  # fmt: skip


def _seen(db: sqlite3.Connection, audit: int, host_id: int, layers: list[str], kept: list[int]) -> Iterator[Item]:
    rows = db.execute(
        "SELECT fact.id, kind, layer, name, have, want, more FROM span "
        "JOIN fact ON fact.id = span.fact JOIN subject ON subject.id = span.subject "
        "WHERE host = ? AND since <= ? AND (until IS NULL OR until > ?)",
        (host_id, audit, audit),
    )
    for fact, *values in rows:
        item = Item(*values)
        if item.kind == STATUS or (item.layer in layers and fact not in kept):
            yield item
