"""Add an audit to the history. For each host, only facts that changed since its previous audit are written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b

from hostwright.audit.fleetaudit import FleetAudit, HostAudit
from hostwright.audit.history.items import HostSnapshot, Item, kept, snapshot
from hostwright.common.places import place_of

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An audit in the form in which it is written to the history."""

    audit: FleetAudit
    at: int  #: time of the audit in seconds since 1970
    place: str  #: location of the inventory
    #: audit and facts of each host, by the name of the host in the history
    hosts: Mapping[str, tuple[HostAudit, HostSnapshot]]


def entry(audit: FleetAudit) -> AuditEntry:
    """Prepare ``audit`` for writing. Raises ``ValueError`` for an offline audit or an invalid time."""
    if audit.offline:
        raise ValueError("an offline audit read no host and cannot be added to the history")
    hosts = {kept(host.host): (host, snapshot(host)) for host in audit.hosts}
    return AuditEntry(audit, epoch(audit.at), place_of(audit.inventory), hosts)


def write(db: sqlite3.Connection, new: AuditEntry) -> int:
    """Write ``new`` within a transaction, and return the number of the audit."""
    db.execute("INSERT INTO inventory (place) VALUES (?) ON CONFLICT DO NOTHING", (new.place,))
    (inventory,) = db.execute("SELECT id FROM inventory WHERE place = ?", (new.place,)).fetchone()
    values = (inventory, new.at, new.audit.took_s, len(new.hosts))
    number = db.execute("INSERT INTO audit (inventory, at, took_s, hosts) VALUES (?, ?, ?, ?)", values).lastrowid
    if number is None:
        raise sqlite3.DatabaseError("the audit got no number")
    facts = _facts(db, {item for _, seen in new.hosts.values() for item in seen.items})
    ids = _hosts(db, inventory, number, new.hosts)
    for name, (host, seen) in new.hosts.items():
        scope = _scope(db, seen, _spans(db, number, ids[name], seen, facts))
        after_s = epoch(host.at) - new.at
        row = (number, ids[name], after_s, host.status, scope, len(host.deviations), len(host.findings))
        db.execute("INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return number


def epoch(at: str) -> int:
    """Convert ``at``, an ISO 8601 time, to seconds since 1970. A time without an offset is UTC."""
    moment = datetime.fromisoformat(at)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


@dataclass(frozen=True, slots=True)
class StoredFact:
    """The database IDs of a fact and of its subject."""

    id: int
    subject: int


def _hosts(db: sqlite3.Connection, inventory: int, number: int, names: Iterable[str]) -> dict[str, int]:
    db.executemany(
        "INSERT INTO host (inventory, name, first, last) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last = excluded.last",
        ((inventory, name, number, number) for name in names),
    )
    return dict(db.execute("SELECT name, id FROM host WHERE inventory = ? AND last = ?", (inventory, number)))


def _spans(
    db: sqlite3.Connection, number: int, host: int, now: HostSnapshot, facts: Mapping[Item, StoredFact]
) -> list[int]:
    query = "SELECT fact, since, subject FROM span WHERE host = ? AND until IS NULL"
    before = {fact: (since, subject) for fact, since, subject in db.execute(query, (host,))}
    present = {facts[item].id: (facts[item].subject, note or None) for item, note in now.items.items()}
    left = []
    for fact in before.keys() - present.keys():
        item = item_of(db, fact)
        if now.ends(item):
            since, subject = before[fact]
            db.execute(
                "UPDATE span SET until = ? WHERE host = ? AND subject = ? AND since = ? AND fact = ?",
                (number, host, subject, since, fact),
            )
        elif item.layer in now.layers:
            left.append(fact)
    db.executemany(
        "INSERT INTO span (host, subject, since, fact, note) VALUES (?, ?, ?, ?, ?)",
        ((host, present[fact][0], number, fact, present[fact][1]) for fact in present.keys() - before.keys()),
    )
    return left


def _scope(db: sqlite3.Connection, now: HostSnapshot, left: Iterable[int]) -> int:
    values = (json.dumps(sorted(now.layers)), json.dumps(sorted(left)))
    query = "SELECT id FROM scope WHERE layers = ? AND kept = ?"
    row = db.execute(query, values).fetchone()
    if row is None:
        db.execute("INSERT INTO scope (layers, kept) VALUES (?, ?)", values)
        row = db.execute(query, values).fetchone()
    return int(row[0])


def _facts(db: sqlite3.Connection, items: Iterable[Item]) -> dict[Item, StoredFact]:
    subjects: dict[tuple[str, ...], int] = {}
    return {item: _fact(db, item, _subject(db, item, subjects)) for item in items}


def _subject(db: sqlite3.Connection, item: Item, known: dict[tuple[str, ...], int]) -> int:
    key = item[:3]
    if key not in known:
        db.execute("INSERT INTO subject (kind, layer, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", key)
        query = "SELECT id FROM subject WHERE kind = ? AND layer = ? AND name = ?"
        (known[key],) = db.execute(query, key).fetchone()
    return known[key]


def _fact(db: sqlite3.Connection, item: Item, subject: int) -> StoredFact:
    digest = blake2b(json.dumps(item).encode("ascii"), digest_size=DIGEST_BYTES).digest()
    row = db.execute("SELECT id FROM fact WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        values = (subject, digest, item.have, item.want, item.more)
        db.execute("INSERT INTO fact (subject, digest, have, want, more) VALUES (?, ?, ?, ?, ?)", values)
        row = db.execute("SELECT id FROM fact WHERE digest = ?", (digest,)).fetchone()
    return StoredFact(int(row[0]), subject)


def item_of(db: sqlite3.Connection, fact: int) -> Item:
    """Return the fact with the database ID ``fact``."""
    query = (
        "SELECT kind, layer, name, have, want, more FROM fact JOIN subject ON subject.id = fact.subject "
        "WHERE fact.id = ?"
    )
    return Item(*db.execute(query, (fact,)).fetchone())
