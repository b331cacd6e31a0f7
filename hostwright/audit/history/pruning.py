"""Remove old entries from the audit history, and unchanged entries of past days if audits are frequent."""

from __future__ import annotations

import json
import sqlite3

DAY_S = 86_400
#: number of days for which audits are kept. Users compare audits with the year before.
KEEP_DAYS = 400
#: number of further days before audits are removed, so that daily audits remove old audits only once a month
SLACK_DAYS = 30


def tidy(db: sqlite3.Connection, number: int, at: int) -> None:
    """Clean up after the audit ``number``, which began at ``at`` (seconds since 1970).

    After the first audit of a day, ``thin`` removes entries of past days. About once a month, ``prune`` removes old
    entries.
    """
    (inventory,) = db.execute("SELECT inventory FROM audit WHERE id = ?", (number,)).fetchone()
    query = "SELECT at FROM audit WHERE inventory = ? AND id < ? ORDER BY id DESC LIMIT 1"
    before = db.execute(query, (inventory, number)).fetchone()
    if before and before[0] // DAY_S < at // DAY_S:
        thin(db, inventory, at)
    oldest = db.execute("SELECT at FROM audit WHERE id > (SELECT audit FROM pruned) ORDER BY id LIMIT 1").fetchone()
    if oldest[0] < at - (KEEP_DAYS + SLACK_DAYS) * DAY_S:
        prune(db, at)


def thin(db: sqlite3.Connection, inventory: int, now: int) -> None:
    """For each day before the day of ``now``, keep only the host statuses of the day's last audit, and all changes.

    Otherwise, with ``--watch``, a thousand hosts would add a thousand rows a minute.
    """
    over = db.execute(
        "SELECT id FROM audit WHERE inventory = ? AND at < ? AND id NOT IN (SELECT last FROM host) "
        "AND id NOT IN (SELECT max(id) FROM audit WHERE inventory = ? GROUP BY at / ?)",
        (inventory, now // DAY_S * DAY_S, inventory, DAY_S),
    ).fetchall()
    ids = json.dumps([number for (number,) in over])
    db.execute("DELETE FROM seen WHERE audit IN (SELECT value FROM json_each(?))", (ids,))
    db.execute(
        "DELETE FROM audit WHERE id IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT first FROM host) "
        "AND NOT EXISTS (SELECT 1 FROM span WHERE since = audit.id) "
        "AND NOT EXISTS (SELECT 1 FROM span WHERE until = audit.id)",
        (ids,),
    )


def prune(db: sqlite3.Connection, now: int, keep_days: int = KEEP_DAYS) -> None:
    """Remove audits older than ``keep_days``, facts that ended before that time, and hosts not audited since.

    If a fact still holds, its start is kept, however old. ``now`` is in seconds since 1970.
    """
    query = "SELECT coalesce((SELECT min(id) - 1 FROM audit WHERE at >= ?), (SELECT max(id) FROM audit), 0)"
    (last,) = db.execute(query, (now - keep_days * DAY_S,)).fetchone()
    db.execute("UPDATE pruned SET audit = max(audit, ?)", (last,))
    db.execute("DELETE FROM seen WHERE audit <= ?", (last,))
    db.execute("DELETE FROM span WHERE until <= ?", (last,))
    db.execute("DELETE FROM span WHERE host IN (SELECT id FROM host WHERE last <= ?)", (last,))
    db.execute("DELETE FROM host WHERE last <= ?", (last,))
    db.execute("DELETE FROM fact WHERE id NOT IN (SELECT fact FROM span)")
    db.execute("DELETE FROM subject WHERE id NOT IN (SELECT subject FROM fact UNION SELECT subject FROM span)")
    db.execute(
        "DELETE FROM audit WHERE id <= ? AND id NOT IN (SELECT since FROM span UNION SELECT first FROM host)", (last,)
    )
