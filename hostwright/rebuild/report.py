"""``rebuild --report``: durations of rebuilds by phase and method, compared with the target of ten minutes.

Only successful rebuilds are included, because early failures would make rebuilds look fast. p95 is
``statistics.quantiles`` (inclusive, 20 parts) or, with fewer than 20 values, the slowest value.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hostwright.rebuild.rebuild import OUTCOMES, PHASES, TARGET_S, Outcome, Rebuild

SCHEMA = 1
FEW = 20  #: minimum number of values for a computed 95th percentile. With fewer values, p95 is the slowest value.
METHOD = "median; p95 by statistics.quantiles (inclusive), with fewer than 20 values the slowest"


@dataclass(frozen=True, slots=True)
class Times:
    """Statistics of the seconds that a phase or method took in ``number`` rebuilds. ``slowest`` is the slowest host."""

    name: str
    number: int
    median_s: float
    p95_s: float
    longest_s: float
    slowest: str
    within: int  #: number of rebuilds that took at most ten minutes


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of a fleet's rebuilds. ``slow`` has the hosts with a rebuild of over ten minutes, by method."""

    outcomes: tuple[tuple[Outcome, int], ...]
    phases: tuple[Times, ...]
    ways: tuple[Times, ...]
    total: Times | None
    slow: tuple[tuple[str, tuple[str, ...]], ...]
    last: tuple[Rebuild, ...]  #: last rebuild of each host, sorted by host name


def summarise(records: Iterable[Rebuild]) -> Summary:
    """Summarize the rebuilds in ``records``, in any order."""
    known = sorted(records, key=lambda rebuild: rebuild.at)
    done = [rebuild for rebuild in known if rebuild.outcome == "rebuilt"]
    totals = {way: [(rebuild.total_s, rebuild.host) for rebuild in done if rebuild.way == way] for way in _ways(done)}
    late: dict[str, dict[str, None]] = {}
    for rebuild in done:
        if rebuild.total_s > TARGET_S:
            late.setdefault(rebuild.way, {})[rebuild.host] = None
    last = {rebuild.host: rebuild for rebuild in known}
    return Summary(
        outcomes=tuple(
            (name, number) for name in OUTCOMES if (number := sum(rebuild.outcome == name for rebuild in known))
        ),
        phases=tuple(times(name, timed) for name in PHASES if (timed := _of_phase(done, name))),
        ways=tuple(times(way, timed) for way, timed in totals.items()),
        total=times("all", [(rebuild.total_s, rebuild.host) for rebuild in done]) if done else None,
        slow=tuple((way, tuple(sorted(hosts))) for way, hosts in late.items()),
        last=tuple(last[name] for name in sorted(last)),
    )


def times(name: str, timed: Sequence[tuple[float, str]]) -> Times:
    """Compute the statistics for ``name`` from at least one pair of seconds and host."""
    values = sorted(seconds for seconds, _ in timed)
    p95_s = values[-1] if len(values) < FEW else statistics.quantiles(values, n=20, method="inclusive")[-1]
    longest_s, slowest = max(timed)
    within = sum(value <= TARGET_S for value in values)
    return Times(name, len(values), statistics.median(values), p95_s, longest_s, slowest, within)


def document(records: Iterable[Rebuild]) -> dict[str, Any]:
    """Return the report as JSON values. Write them as ASCII, because they contain untrusted text."""
    summary = summarise(records)
    return {
        "schema": SCHEMA,
        "target_s": TARGET_S,
        "method": METHOD,
        "outcomes": dict(summary.outcomes),
        "phases": [asdict(phase) for phase in summary.phases],
        "ways": [asdict(way) for way in summary.ways],
        "total": asdict(summary.total) if summary.total else None,
        "slow": {way: list(hosts) for way, hosts in summary.slow},
        "last": [{**asdict(rebuild), "at": rebuild.at.isoformat(timespec="seconds")} for rebuild in summary.last],
    }


def _ways(rebuilds: Iterable[Rebuild]) -> tuple[str, ...]:
    return tuple(sorted({rebuild.way for rebuild in rebuilds}))


def _of_phase(rebuilds: Iterable[Rebuild], name: str) -> list[tuple[float, str]]:
    return [(seconds, rebuild.host) for rebuild in rebuilds for phase, seconds in rebuild.phases if phase == name]
