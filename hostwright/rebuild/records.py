"""Records of all rebuilds, stored on this machine in ``rebuilds.sqlite`` of the state directory.

Only this user can read the file; several processes may write at the same time. A rebuild is one row, written at its
end. Hosts are identified by the path of their inventory and their name.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

from hostwright.apply.journal.sqlitefile import SqliteFile
from hostwright.common.errors import InputError
from hostwright.common.input.adapter import adapter
from hostwright.common.places import place_of
from hostwright.rebuild.rebuild import Rebuild

FILE = "rebuilds.sqlite"
VERSION = 1  #: version of the database schema, stored as SQLite's ``user_version``
KEEP = timedelta(days=400)  #: maximum age of the records of rebuilds. Records of audits have the same limit.

_FORM = (
    "CREATE TABLE rebuild (id INTEGER PRIMARY KEY, place TEXT NOT NULL, host TEXT NOT NULL, at REAL NOT NULL, "
    "document TEXT NOT NULL)",
    "CREATE INDEX rebuild_host ON rebuild (place, host, at)",
)


class Records:
    """Stored rebuilds of one inventory's hosts. Thread-safe; no file stays open between calls.

    ``root`` is the state directory. Methods raise ``HostwrightError`` with a fix if the file is unusable.
    """

    def __init__(self, root: Path, inventory: str | Path):
        self.path = root / FILE
        self._place = place_of(inventory)

    def add(self, rebuild: Rebuild) -> None:
        """Store ``rebuild`` durably, and delete records that are older than ``KEEP``."""
        at = rebuild.at.timestamp()
        row = (self._place, rebuild.host, at, adapter(Rebuild).dump_json(rebuild, ensure_ascii=True).decode())
        with _opened(self.path, write=True) as db:
            db.execute("INSERT INTO rebuild (place, host, at, document) VALUES (?, ?, ?, ?)", row)
            db.execute("DELETE FROM rebuild WHERE at < ?", (at - KEEP.total_seconds(),))

    def of(self, host: str, since: datetime | None = None) -> tuple[Rebuild, ...]:
        """Rebuilds of one host, oldest first; with ``since``, only rebuilds that started at this time or later."""
        return self._read("AND host = ?", (host,), since)

    def all(self, since: datetime | None = None) -> tuple[Rebuild, ...]:
        """Rebuilds of all hosts, oldest first; with ``since``, only rebuilds that started at this time or later."""
        return self._read("", (), since)

    def _read(self, where: str, values: tuple[str, ...], since: datetime | None) -> tuple[Rebuild, ...]:
        earliest = since.timestamp() if since else 0.0
        query = f"SELECT document FROM rebuild WHERE place = ? {where} AND at >= ? ORDER BY at, id"  # noqa: S608 - two fixed texts
        with _opened(self.path, write=False) as db:
            rows = db.execute(query, (self._place, *values, earliest)).fetchall()
            return tuple(adapter(Rebuild).validate_json(document) for (document,) in rows)


def _prepare(db: sqlite3.Connection) -> None:
    """Raises ``InputError`` if the database belongs to another program or to a newer version."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise InputError(
            f"the file was written by a newer Hostwright (schema {version}; this version reads up to "
            f"{VERSION}); upgrade Hostwright here, or set HOSTWRIGHT_STATE to another directory"
        )
    if version < VERSION:
        _give_form(db)
    db.execute("PRAGMA synchronous=FULL")  # With FULL, a stored record survives a power failure.


def _give_form(db: sqlite3.Connection) -> None:
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise InputError(
            "the file is a database of another program; move it away, and the next rebuild creates a new one"
        )
    db.execute("PRAGMA journal_mode=WAL")  # With WAL, readers and the writer do not block each other.
    db.execute("BEGIN IMMEDIATE")
    for statement in _FORM:
        db.execute(statement)
    db.execute(f"PRAGMA user_version={VERSION}")
    db.execute("COMMIT")


_opened = SqliteFile(_prepare, "new records begin with the next rebuild").opened
