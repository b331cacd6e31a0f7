"""Count hosts by status and by value of each reading on each day."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from hostwright.audit.history.items import READING, STATUS
from hostwright.audit.history.pruning import DAY_S
from hostwright.audit.history.reading import moment
from hostwright.audit.reports.trend import TrendPoint

STALE_DAYS = 7  #: number of days for which trends count a host after the host's last audit
#: maximum number of different values of a charted reading. Readings such as serial numbers have more values.
MOST_VALUES = 20

_Subject = tuple[str, str, str]  #: kind, layer and name of a fact
_Line = Mapping[str, list[int]]  #: mapping from a value to the number of hosts on each day


def trend(db: sqlite3.Connection, inventory: int | None, days: int) -> tuple[TrendPoint, ...]:
    """Return one point for each day with an audit, in the ``days`` days before the last audit."""
    calendar = _calendar(db, inventory, days)
    if calendar is None:
        return ()
    lines = _lines(db, inventory, calendar)
    counts = lines.pop((STATUS, "", ""), {})
    return tuple(
        TrendPoint(
            day,
            _on(counts, number),
            {f"{layer} {name}": hosts for (_, layer, name), line in lines.items() if (hosts := _on(line, number))},
        )
        for number, day in enumerate(calendar.names)
    )


def _on(line: _Line, number: int) -> dict[str, int]:
    return {value: hosts[number] for value, hosts in line.items() if hosts[number]}


@dataclass(frozen=True, slots=True)
class _Calendar:
    days: list[int]
    last: list[int]
    day_of: Mapping[int, int]  #: mapping from the number of an audit to the day of the audit

    @property
    def names(self) -> list[str]:
        return [moment(day * DAY_S).date().isoformat() for day in self.days]

    def begin(self, since: int) -> int:
        return bisect_left(self.last, since)

    def end(self, until: int | None, last_seen: int) -> int:
        stale = bisect_left(self.days, self.day_of[last_seen] + STALE_DAYS + 1)
        return stale if until is None else min(stale, bisect_left(self.last, until))


def _calendar(db: sqlite3.Connection, inventory: int | None, days: int) -> _Calendar | None:
    query = "SELECT id, at / ? FROM audit WHERE inventory = ? ORDER BY id"
    day_of: dict[int, int] = dict(db.execute(query, (DAY_S, inventory)).fetchall())
    (pruned,) = db.execute("SELECT audit FROM pruned").fetchone()
    last_of = {day: audit for audit, day in day_of.items() if audit > pruned}
    shown = sorted(day for day in last_of if day > max(last_of) - days)
    if not shown:
        return None
    return _Calendar(shown, list(accumulate((last_of[day] for day in shown), max)), day_of)


def _lines(db: sqlite3.Connection, inventory: int | None, calendar: _Calendar) -> dict[_Subject, _Line]:
    steps: dict[_Subject, dict[str, list[int]]] = defaultdict(dict)
    for kind, layer, name, have, since, until, last_seen, hosts in db.execute(_GROUPED, (inventory, STATUS, READING)):
        begin, end = calendar.begin(since), calendar.end(until, last_seen)
        if begin < end:
            line = steps[kind, layer, name].setdefault(have, [0] * (len(calendar.days) + 1))
            line[begin] += hosts
            line[end] -= hosts
    charted = {subject: line for subject, line in steps.items() if subject[0] == STATUS or len(line) <= MOST_VALUES}
    return {
        subject: {have: list(accumulate(line)) for have, line in by_value.items()}
        for subject, by_value in charted.items()
    }


#: query that combines hosts with the same fact and the same period in one row
_GROUPED = """
SELECT kind, layer, name, have, since, until, seen, hosts FROM (
    SELECT fact, since, until, host.last AS seen, count(*) AS hosts FROM span JOIN host ON host.id = span.host
    WHERE inventory = ? AND fact IN (
        SELECT fact.id FROM fact JOIN subject ON subject.id = fact.subject WHERE kind IN (?, ?))
    GROUP BY fact, since, until, host.last)
JOIN fact ON fact.id = fact JOIN subject ON subject.id = fact.subject
"""
