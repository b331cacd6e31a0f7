"""Every rebuild of every host, kept on this machine in ``rebuilds.sqlite`` of the state directory.

An embedded SQLite file, mode 0600 in a directory of mode 0700, into which several processes may write at the same time.
A rebuild is one row, written when it has ended and on the disk when ``add`` returns; a cut leaves the row out or whole.
Inventories are told apart by where they lie, so that a ``gpu01`` of another inventory is another host.
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
VERSION = 1  #: of the form below, kept as SQLite's user_version
KEEP = timedelta(days=400)  #: as long as the history of audits: a year, and the month before it to compare with

_FORM = (
    "CREATE TABLE rebuild (id INTEGER PRIMARY KEY, place TEXT NOT NULL, host TEXT NOT NULL, at REAL NOT NULL, "
    "document TEXT NOT NULL)",
    "CREATE INDEX rebuild_host ON rebuild (place, host, at)",
)


class Records:
    """The rebuilds of one inventory's hosts. Usable from any thread and process; nothing is kept open between calls.

    ``root`` is ``journal.state_root()``. Every method raises ``HostwrightError`` for a file that cannot be used, with
    what to do. Where no rebuild was ever written, all is empty and no file is made.
    """

    def __init__(self, root: Path, inventory: str | Path):
        self.path = root / FILE
        self._place = place_of(inventory)

    def add(self, rebuild: Rebuild) -> None:
        """Write a rebuild: when this returns it is on the disk. What is older than 400 days goes."""
        at = rebuild.at.timestamp()
        row = (self._place, rebuild.host, at, adapter(Rebuild).dump_json(rebuild, ensure_ascii=True).decode())
        with _opened(self.path, write=True) as db:
            db.execute("INSERT INTO rebuild (place, host, at, document) VALUES (?, ?, ?, ?)", row)
            db.execute("DELETE FROM rebuild WHERE at < ?", (at - KEEP.total_seconds(),))

    def of(self, host: str, since: datetime | None = None) -> tuple[Rebuild, ...]:
        """The rebuilds of one host, the oldest first; ``since`` leaves out those that began before."""
        return self._read("AND host = ?", (host,), since)

    def all(self, since: datetime | None = None) -> tuple[Rebuild, ...]:
        """The rebuilds of all hosts, the oldest first; ``since`` leaves out those that began before."""
        return self._read("", (), since)

    def _read(self, where: str, values: tuple[str, ...], since: datetime | None) -> tuple[Rebuild, ...]:
        earliest = since.timestamp() if since else 0.0
        query = f"SELECT document FROM rebuild WHERE place = ? {where} AND at >= ? ORDER BY at, id"  # noqa: S608 - two fixed texts
        with _opened(self.path, write=False) as db:
            rows = db.execute(query, (self._place, *values, earliest)).fetchall()
            return tuple(adapter(Rebuild).validate_json(document) for (document,) in rows)


def _prepare(db: sqlite3.Connection) -> None:
    """Give a new file its tables. Raises ``InputError`` for another version's file and for another program's."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise InputError(
            f"was written by a newer Hostwright (schema {version}; this one reads up to {VERSION}): upgrade Hostwright "
            "here, or set HOSTWRIGHT_STATE to another directory"
        )
    if version < VERSION:
        _give_form(db)
    db.execute("PRAGMA synchronous=FULL")  # a few rows a day: each is on the disk before anybody relies on it


def _give_form(db: sqlite3.Connection) -> None:
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise InputError("is not a database of rebuilds but another program's: move it away, and a new one is created")
    db.execute("PRAGMA journal_mode=WAL")  # readers and one writer do not wait for each other
    db.execute("BEGIN IMMEDIATE")
    for statement in _FORM:
        db.execute(statement)
    db.execute(f"PRAGMA user_version={VERSION}")
    db.execute("COMMIT")


_opened = SqliteFile(_prepare, "new records begin with the next rebuild").opened
