"""The SQLite tables of the history, the migrations from earlier versions, and the function that opens the file.

``audit`` has one row for each audit, ``seen`` one for each host in it. A ``subject`` is identified by kind, layer and
name, and shared by all hosts; a ``fact`` is one value of a subject. A ``span`` means that a fact held from one audit
(``since``) until the audit that found its end (``until``; NULL while it holds). A host that does not change costs one
row of ``seen`` for each audit.

``proof`` has one row for each proof of a host, ``measured`` its figures, ``baseline`` the reference figures of a host.

Times are seconds since 1970, UTC. Audits are numbered in the order in which they were written.
"""

from __future__ import annotations

import sqlite3

from hostwright.apply.journal.sqlitefile import SqliteFile
from hostwright.common.errors import InputError

CACHE_KIB = 64 * 1024  #: size in KiB of SQLite's page cache, for the current facts of all hosts

#: SQL statements that migrate a file from each version to the next. Never edit a released element.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE inventory (id INTEGER PRIMARY KEY, place TEXT NOT NULL UNIQUE)",
        """CREATE TABLE audit (
            id INTEGER PRIMARY KEY AUTOINCREMENT, inventory INTEGER NOT NULL REFERENCES inventory,
            at INTEGER NOT NULL, took_s REAL NOT NULL, hosts INTEGER NOT NULL)""",
        "CREATE INDEX audit_at ON audit (inventory, at)",
        """CREATE TABLE host (
            id INTEGER PRIMARY KEY, inventory INTEGER NOT NULL REFERENCES inventory, name TEXT NOT NULL,
            first INTEGER NOT NULL REFERENCES audit, last INTEGER NOT NULL REFERENCES audit,
            UNIQUE (inventory, name))""",
        # The column ``audit`` has the number of the last pruned audit.
        "CREATE TABLE pruned (audit INTEGER NOT NULL)",
        "INSERT INTO pruned VALUES (0)",
        # The column ``kept`` lists the facts in ``layers`` that could not be checked.
        "CREATE TABLE scope (id INTEGER PRIMARY KEY, layers TEXT NOT NULL, kept TEXT NOT NULL, UNIQUE (layers, kept))",
        """CREATE TABLE seen (
            audit INTEGER NOT NULL REFERENCES audit, host INTEGER NOT NULL REFERENCES host,
            after_s INTEGER NOT NULL, status TEXT NOT NULL, scope INTEGER NOT NULL REFERENCES scope,
            deviations INTEGER NOT NULL, findings INTEGER NOT NULL, PRIMARY KEY (audit, host)) WITHOUT ROWID""",
        """CREATE TABLE subject (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, layer TEXT NOT NULL, name TEXT NOT NULL,
            UNIQUE (kind, layer, name))""",
        # The column ``digest`` is a hash, since an index over the values would store each value twice.
        """CREATE TABLE fact (
            id INTEGER PRIMARY KEY, subject INTEGER NOT NULL REFERENCES subject, digest BLOB NOT NULL UNIQUE,
            have TEXT NOT NULL, want TEXT, more TEXT NOT NULL)""",
        "CREATE INDEX fact_subject ON fact (subject)",
        # The primary key keeps the rows of a host adjacent, so that one range has the whole history of the host.
        """CREATE TABLE span (
            host INTEGER NOT NULL REFERENCES host, subject INTEGER NOT NULL REFERENCES subject,
            since INTEGER NOT NULL REFERENCES audit, fact INTEGER NOT NULL REFERENCES fact,
            until INTEGER REFERENCES audit, note TEXT, PRIMARY KEY (host, subject, since, fact)) WITHOUT ROWID""",
        "CREATE INDEX span_open ON span (host, subject) WHERE until IS NULL",
        "CREATE INDEX span_since ON span (since)",
        "CREATE INDEX span_until ON span (until) WHERE until IS NOT NULL",
        "CREATE INDEX span_fact ON span (fact, since, until)",
    ),
    (
        # The column ``host`` is a name instead of an id, since proofs and audits are pruned independently.
        """CREATE TABLE proof (
            id INTEGER PRIMARY KEY AUTOINCREMENT, inventory INTEGER NOT NULL REFERENCES inventory, host TEXT NOT NULL,
            at INTEGER NOT NULL, run TEXT NOT NULL, proof TEXT NOT NULL, outcome TEXT NOT NULL, took_s REAL NOT NULL,
            sha256 TEXT NOT NULL)""",
        "CREATE INDEX proof_at ON proof (inventory, at)",
        """CREATE TABLE measured (
            proof INTEGER NOT NULL REFERENCES proof, name TEXT NOT NULL, device TEXT NOT NULL, value REAL NOT NULL,
            unit TEXT NOT NULL, better TEXT NOT NULL, PRIMARY KEY (proof, name, device)) WITHOUT ROWID""",
        """CREATE TABLE baseline (
            inventory INTEGER NOT NULL REFERENCES inventory, host TEXT NOT NULL, proof TEXT NOT NULL,
            name TEXT NOT NULL, device TEXT NOT NULL, at INTEGER NOT NULL, value REAL NOT NULL,
            PRIMARY KEY (inventory, host, proof, name, device)) WITHOUT ROWID""",
    ),
)


def migrate(db: sqlite3.Connection) -> None:
    """Migrate a history file to the current version.

    Raises ``InputError`` if the file has a newer version or is another program's database.
    """
    version = version_of(db)
    if version == len(MIGRATIONS):
        return
    if version > len(MIGRATIONS):
        raise InputError(
            f"the file was written by a newer Hostwright (schema {version}; this version reads up to "
            f"{len(MIGRATIONS)}); upgrade Hostwright here, or set HOSTWRIGHT_STATE to another directory"
        )
    db.execute("PRAGMA journal_mode=WAL")  # In WAL mode, readers and the writer do not block each other.
    db.execute("BEGIN IMMEDIATE")
    version = version_of(db)  # Another process may have migrated the file in the meantime.
    if version == 0 and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise InputError(
            "the file is a database of another program; move it away, and run an audit to create a new history"
        )
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            db.execute(statement)
    db.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
    db.execute("COMMIT")


def version_of(db: sqlite3.Connection) -> int:
    """Return the schema version of a history file; 0 if the file is new."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _prepare(db: sqlite3.Connection) -> None:
    migrate(db)
    db.execute("PRAGMA foreign_keys=ON")
    # With NORMAL, a power cut may lose the last audit, but cannot damage the file.
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")


opened = SqliteFile(_prepare, "a new history begins with the next audit").opened
