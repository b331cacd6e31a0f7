"""Compute the changes in a fleet between two audits."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

from hostwright.audit.history.hosthistory import FleetChange, FleetDiff
from hostwright.audit.history.items import READING, STATUS, Item
from hostwright.audit.history.moving import VALUES, Key, fact_changes, shown
from hostwright.audit.history.pruning import DAY_S
from hostwright.audit.history.reading import moment
from hostwright.audit.judging.outliers import OWN

UNSEEN_DAYS = 30  #: number of days without an audit after which a host is not part of the fleet

_Facts = dict[tuple[int, int], list[Item]]  #: mapping from database ids of a host and a subject to current facts

_COLUMNS = "SELECT span.host, span.subject, kind, layer, subject.name, have, want, more FROM span "
_JOINED = (
    "JOIN host ON host.id = span.host JOIN fact ON fact.id = span.fact JOIN subject ON subject.id = span.subject "
    "WHERE inventory = :inventory AND first <= :then "
)
#: queries for facts that ended, and for facts that began, between two audits. A single query could not use an index.
_ENDED = _COLUMNS + _JOINED + "AND until > :then AND until <= :now AND since <= :then"
_BEGUN = _COLUMNS + _JOINED + "AND since > :then AND since <= :now AND (until IS NULL OR until > :now)"


def compare(db: sqlite3.Connection, inventory: int | None, since: datetime, until: datetime | None) -> FleetDiff:
    """Compare the last audit before ``since`` with the last one before ``until`` (``None``: the newest audit).

    If there is no audit before ``since``, the first audit is used instead.
    """
    then = _audit(db, inventory, since) or _first(db, inventory)
    now = _audit(db, inventory, until) if until else _last(db, inventory)
    if then is None or now is None or now[0] <= then[0]:
        at = moment(then[1]) if then else None
        return FleetDiff(at, at, unread=_unread(db, inventory, then[0]) if then else ())
    window = {"inventory": inventory, "then": then[0], "now": now[0], "month": then[1] - UNSEEN_DAYS * DAY_S}
    names: dict[int, str] = dict(db.execute("SELECT id, name FROM host WHERE inventory = ?", (inventory,)).fetchall())
    came = "SELECT name FROM host WHERE inventory = :inventory AND first > :then AND first <= :now ORDER BY name"
    unseen = (
        "SELECT name FROM host JOIN audit ON audit.id = last WHERE host.inventory = :inventory AND last <= :then "
        "AND at >= :month ORDER BY name"
    )
    return FleetDiff(
        moment(then[1]),
        moment(now[1]),
        tuple(_folded(db, window, names)),
        tuple(name for (name,) in db.execute(came, window)),
        tuple(name for (name,) in db.execute(unseen, window)),
        _unread(db, inventory, now[0]),
    )


_Row = tuple[int, int]  #: number of an audit, and the start time of the audit in seconds since 1970


def _audit(db: sqlite3.Connection, inventory: int | None, at: datetime) -> _Row | None:
    query = "SELECT id, at FROM audit WHERE inventory = ? AND at <= ? ORDER BY id DESC LIMIT 1"
    row: _Row | None = db.execute(query, (inventory, int(at.timestamp()))).fetchone()
    return row


def _first(db: sqlite3.Connection, inventory: int | None) -> _Row | None:
    row: _Row | None = db.execute(
        "SELECT id, at FROM audit WHERE inventory = ? ORDER BY id LIMIT 1", (inventory,)
    ).fetchone()
    return row


def _last(db: sqlite3.Connection, inventory: int | None) -> _Row | None:
    query = "SELECT id, at FROM audit WHERE inventory = ? ORDER BY id DESC LIMIT 1"
    row: _Row | None = db.execute(query, (inventory,)).fetchone()
    return row


def _unread(db: sqlite3.Connection, inventory: int | None, now: int) -> tuple[str, ...]:
    rows = db.execute(
        "SELECT host.name FROM span JOIN host ON host.id = span.host WHERE inventory = ? "
        "AND fact IN (SELECT fact.id FROM fact JOIN subject ON subject.id = subject "
        "WHERE kind = ? AND have = 'unread') "
        "AND since <= ? AND (until IS NULL OR until > ?) ORDER BY host.name",
        (inventory, STATUS, now, now),
    )
    return tuple(name for (name,) in rows)


def _folded(
    db: sqlite3.Connection, window: Mapping[str, int | None], names: Mapping[int, str]
) -> Iterator[FleetChange]:
    ended, begun = _facts(db, _ENDED, window), _facts(db, _BEGUN, window)
    _add_last_known(db, ended, begun, window)
    hosts: dict[tuple[Key, str | None, str | None], set[str]] = defaultdict(set)
    for host, subject in ended.keys() | begun.keys():
        for change in fact_changes(ended.get((host, subject), ()), begun.get((host, subject), ())):
            hosts[change.item[:3], shown(change.before), shown(change.after)].add(names[host])
    for (key, before, after), affected in sorted(hosts.items(), key=lambda pair: (pair[0][0], sorted(pair[1]))):
        yield FleetChange(*key, before, after, tuple(sorted(affected)))


def _facts(db: sqlite3.Connection, query: str, window: Mapping[str, int | None]) -> _Facts:
    facts: _Facts = defaultdict(list)
    for host, subject, *values in db.execute(query, window):
        item = Item(*values)
        if not (item.kind == READING and (item.layer, item.name) in OWN):
            facts[host, subject].append(item)
    return facts


def _add_last_known(db: sqlite3.Connection, ended: _Facts, begun: _Facts, window: Mapping[str, int | None]) -> None:
    query = (
        "SELECT kind, layer, name, have, want, more FROM span JOIN fact ON fact.id = span.fact "
        "JOIN subject ON subject.id = span.subject WHERE host = ? AND span.subject = ? AND since <= ? "
        "ORDER BY since DESC LIMIT 1"
    )
    for (host, subject), items in begun.items():
        if items[0].kind in VALUES and (host, subject) not in ended:
            row = db.execute(query, (host, subject, window["then"])).fetchone()
            if row:
                ended[host, subject] = [Item(*row)]
