"""Opening the history, which is an SQLite database."""

from __future__ import annotations

import sqlite3

from hostwright.apply.journal.sqlitefile import SqliteFile
from hostwright.audit.history.schema import migrate

CACHE_KIB = 64 * 1024  #: of pages in memory: adding an audit reads the current facts of every host


def _prepare(db: sqlite3.Connection) -> None:
    migrate(db)
    db.execute("PRAGMA foreign_keys=ON")
    db.execute("PRAGMA synchronous=NORMAL")  # a power cut may lose the last audit, but never damages the file
    db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")


opened = SqliteFile(_prepare, "a new history begins with the next audit").opened
