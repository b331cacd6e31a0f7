"""The interface of the audit history, which is one SQLite file. Each call opens and closes the file."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Connection

from hostwright.apply.journal.selecting import check_sets, named_sets, sets_of_runs
from hostwright.audit.fleetaudit import GPU_LAYER, FleetAudit
from hostwright.audit.hardware.known import REMEMBERED_DAYS, KnownCard, KnownHardware
from hostwright.audit.history import comparing, pruning, reading, trending
from hostwright.audit.history.hosthistory import FleetDiff, HostHistory
from hostwright.audit.history.items import CARD, READING, Item, card_of
from hostwright.audit.history.pruning import DAY_S
from hostwright.audit.history.schema import opened
from hostwright.audit.history.writing import entry, write
from hostwright.audit.reports.ages import Ages
from hostwright.audit.reports.trend import TrendPoint
from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.untrusted import Pattern

_COUNT = (READING, GPU_LAYER, "count")
_MEMORY = (READING, "base", "memory")
_NUMBER = Pattern(r"([0-9]{1,9})(?: GiB)?")


def hardware(db: sqlite3.Connection, inventory: int | None, now: datetime) -> Mapping[str, KnownHardware]:
    """Return host → hardware, according to facts that held at any time in the ``REMEMBERED_DAYS`` days
    before ``now``.
    """
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


FILE = "history.sqlite"
#: status of the hosts in each ``@`` set, by the name of the set
AUDIT_SETS = {"drifted": "drift", "failing": "failing", "unread": "unread"}


class History:
    """The audits of all inventories on this machine, in a file in the directory ``root``.

    The object can be used from any thread and process. If the file cannot be used, each method raises
    ``HostwrightError`` with a remedy. If no audit was ever written, all results are empty.
    """

    def __init__(self, root: Path):
        self.path = root / FILE

    def add(self, audit: FleetAudit) -> int:
        """Write ``audit`` in one transaction, and return the number of the audit. Some calls also remove old entries.

        Raises ``ValueError`` for an offline audit, which read no host.
        """
        new = entry(audit)
        with opened(self.path, write=True) as db:
            number = write(db, new)
            pruning.tidy(db, number, new.at)
            return number

    def prune(self, keep_days: int = pruning.KEEP_DAYS, *, now: datetime | None = None) -> None:
        """Remove audits older than ``keep_days`` before ``now``, and facts that ended before that time."""
        with opened(self.path, write=True) as db:
            pruning.prune(db, int((now or datetime.now(UTC)).timestamp()), keep_days)

    def host_history(self, host: str, since: datetime | None, inventory: str | Path) -> HostHistory:
        """Return the history of ``host`` since the time ``since``; for ``None``, the whole history."""
        with self._reading(inventory) as (db, number):
            return reading.host_history(db, number, host, since)

    def diff(self, inventory: str | Path, since: datetime, until: datetime | None = None) -> FleetDiff:
        """Compare the last audit before ``since`` with the last one before ``until`` (``None``: the newest audit)."""
        with self._reading(inventory) as (db, number):
            return comparing.compare(db, number, since, until)

    def trend(self, inventory: str | Path, days: int) -> tuple[TrendPoint, ...]:
        """Return the number of hosts by status and value of each reading, per day with an audit in the last ``days``
        days.
        """
        with self._reading(inventory) as (db, number):
            return trending.trend(db, number, days)

    def latest(self, inventory: str | Path) -> Mapping[str, str]:
        """Return host → status in the host's last audit."""
        with self._reading(inventory) as (db, number):
            return reading.latest(db, number)

    def ages(self, inventory: str | Path) -> Ages:
        """Return the times at which the hosts' current statuses, deviations and findings began."""
        with self._reading(inventory) as (db, number):
            return reading.ages(db, number)

    def hardware(self, inventory: str | Path, now: datetime | None = None) -> Mapping[str, KnownHardware]:
        """Return host → hardware, according to audits of the last ``REMEMBERED_DAYS`` days."""
        with self._reading(inventory) as (db, number):
            return hardware(db, number, now or datetime.now(UTC))

    def state(self, audit: int) -> Mapping[str, frozenset[Item]]:
        """Return host → the facts that the audit with the number ``audit`` found.

        For a past day, only the last audit is stored in full.
        """
        with opened(self.path, write=False) as db:
            return reading.state(db, audit)

    @contextmanager
    def _reading(self, inventory: str | Path) -> Iterator[tuple[Connection, int | None]]:
        with opened(self.path, write=False) as db:
            yield db, reading.inventory_id(db, inventory)


def sets_of(pattern: str, root: Path, inventory: str | Path, names: Collection[str]) -> dict[str, set[str]]:
    """Return the hosts for each ``@`` term in ``pattern``, the value of ``--hosts``.

    ``@failed`` and similar sets contain hosts by their result in the last run, ``@failed:RUN`` by their result in a
    named run. ``@drifted`` and similar sets contain hosts by the status of their last audit. ``names`` are the
    inventory's hosts and groups. Raises ``InputError`` for a set without recorded data, unless ``names`` contains the
    name of the set.
    """
    sets = named_sets(root, inventory)
    check_sets(pattern, sets, names)
    sets |= sets_of_runs(pattern, root, names)
    if not any(f"@{name}" in pattern for name in AUDIT_SETS):
        return sets
    latest = History(root).latest(inventory)
    if not latest:
        raise InputError(f"no audit of this inventory is recorded; run {Command('audit')} first", "--hosts")
    by_status = {name: {host for host, now in latest.items() if now == status} for name, status in AUDIT_SETS.items()}
    return {**sets, **by_status}
