"""``invoke rebuild --report``: how long rebuilds took, phase by phase and way by way, against the ten minutes.

Only rebuilds that ended well are timed: one that failed early would look fast. The median is that of the sorted values
(the mean of the middle two); p95 is ``statistics.quantiles`` (inclusive, 20 parts), and the slowest where there are
fewer than twenty values, for then nothing lies beyond it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hostwright.rebuild.rebuild import OUTCOMES, PHASES, TARGET_S, Outcome, Rebuild

SCHEMA = 1  #: of ``document``
FEW = 20  #: with fewer values p95 is the slowest
METHOD = "median; p95 by statistics.quantiles (inclusive), with fewer than 20 values the slowest"


@dataclass(frozen=True, slots=True)
class Times:
    """How long something took, in seconds, over ``number`` rebuilds. ``slowest`` names the host."""

    name: str
    number: int
    median_s: float
    p95_s: float
    longest_s: float
    slowest: str
    within: int  #: how many took no longer than the ten minutes


@dataclass(frozen=True, slots=True)
class Summary:
    """The rebuilds of a fleet, summed up. ``slow`` are the hosts that took longer than the ten minutes, by way."""

    outcomes: tuple[tuple[Outcome, int], ...]
    phases: tuple[Times, ...]
    ways: tuple[Times, ...]
    total: Times | None
    slow: tuple[tuple[str, tuple[str, ...]], ...]
    last: tuple[Rebuild, ...]  #: the last of each host, by name


def summarise(records: Iterable[Rebuild]) -> Summary:
    """Sum up rebuilds, in whatever order they come."""
    known = sorted(records, key=lambda one: one.at)
    done = [one for one in known if one.outcome == "rebuilt"]
    totals = {one: [(rebuild.total_s, rebuild.host) for rebuild in done if rebuild.way == one] for one in _ways(done)}
    late: dict[str, dict[str, None]] = {}
    for one in done:
        if one.total_s > TARGET_S:
            late.setdefault(one.way, {})[one.host] = None
    last = {one.host: one for one in known}
    return Summary(
        outcomes=tuple((name, number) for name in OUTCOMES if (number := sum(one.outcome == name for one in known))),
        phases=tuple(times(name, found) for name in PHASES if (found := _of_phase(done, name))),
        ways=tuple(times(name, found) for name, found in totals.items()),
        total=times("all", [(one.total_s, one.host) for one in done]) if done else None,
        slow=tuple((way, tuple(sorted(hosts))) for way, hosts in late.items()),
        last=tuple(last[name] for name in sorted(last)),
    )


def times(name: str, found: Sequence[tuple[float, str]]) -> Times:
    """Seconds and hosts, at least one, summed up by the method above."""
    values = sorted(seconds for seconds, _ in found)
    p95_s = values[-1] if len(values) < FEW else statistics.quantiles(values, n=20, method="inclusive")[-1]
    longest_s, slowest = max(found)
    within = sum(value <= TARGET_S for value in values)
    return Times(name, len(values), statistics.median(values), p95_s, longest_s, slowest, within)


def document(records: Iterable[Rebuild]) -> dict[str, Any]:
    """The report as JSON values. Names and sentences of hosts are untrusted text: write it as ASCII."""
    found = summarise(records)
    return {
        "schema": SCHEMA,
        "target_s": TARGET_S,
        "method": METHOD,
        "outcomes": dict(found.outcomes),
        "phases": [asdict(one) for one in found.phases],
        "ways": [asdict(one) for one in found.ways],
        "total": asdict(found.total) if found.total else None,
        "slow": {way: list(hosts) for way, hosts in found.slow},
        "last": [{**asdict(one), "at": one.at.isoformat(timespec="seconds")} for one in found.last],
    }


def _ways(rebuilds: Iterable[Rebuild]) -> tuple[str, ...]:
    return tuple(sorted({one.way for one in rebuilds}))


def _of_phase(rebuilds: Iterable[Rebuild], name: str) -> list[tuple[float, str]]:
    return [(seconds, one.host) for one in rebuilds for phase, seconds in one.phases if phase == name]
