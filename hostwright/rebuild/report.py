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

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.audit.reports.table import short
from hostwright.common.text import count, printable
from hostwright.inventory.patterns import fold
from hostwright.rebuild.values import OUTCOMES, PHASES, TARGET_S, Outcome, Rebuild

SCHEMA = 1  #: of ``document``
FEW = 20  #: with fewer values p95 is the slowest
METHOD = "median; p95 by statistics.quantiles (inclusive), with fewer than 20 values the slowest"
STYLES: dict[Outcome, str] = {"rebuilt": "green", "as desired": "green", "failed": "red", "handed over": "yellow"}


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


def table(records: Iterable[Rebuild]) -> RenderableType:
    """The report for a terminal."""
    found = summarise(records)
    if not found.last:
        return Text("no rebuild is recorded yet", style="dim")
    said = ", ".join(f"{number} {name}" for name, number in found.outcomes)
    hosts = count(len(found.last), "host")
    parts: list[RenderableType] = [Text.assemble((f"rebuilds of {hosts}", "bold"), f": {said}")]
    if found.total:
        parts += [_times(found, found.total), Text(METHOD, style="dim")]
    for way, names in found.slow:
        parts.append(Text(f"longer than {TARGET_S / 60:.0f} minutes: {printable(fold(names))} ({way})", style="yellow"))
    return Group(*parts, Text(""), _last(found.last))


def _times(found: Summary, total: Times) -> Table:
    """Phases, then ways, then all."""
    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("")
    for column in ("rebuilds", "median", "p95", "longest", f"in {TARGET_S / 60:.0f} min"):
        shown.add_column(column, justify="right")
    shown.add_column("slowest", overflow="fold")
    for one in found.phases:
        shown.add_row(*_row(one), "", Text(printable(one.slowest), style="dim"))
    for one in (*found.ways, total):
        style = "green" if one.p95_s <= TARGET_S else "yellow"
        ratio = Text(f"{one.within} of {one.number}", style=style)
        shown.add_row(*_row(one, style="bold"), ratio, Text(printable(one.slowest), style="dim"))
    return shown


def _row(one: Times, style: str = "") -> tuple[RenderableType, ...]:
    seconds = (one.median_s, one.p95_s, one.longest_s)
    return Text(one.name, style=style or "cyan"), str(one.number), *(f"{value:.1f} s" for value in seconds)


def _last(rebuilds: Iterable[Rebuild]) -> Table:
    """How each host's last rebuild ended; hosts of which the same is to be said in one line."""
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("hosts", "last rebuild", "way", "ended"):
        shown.add_column(column, overflow="fold")
    alike: dict[tuple[str, str, str, Outcome], list[str]] = {}
    for one in rebuilds:
        key = (f"{one.at:%Y-%m-%d}", one.way, "" if one.outcome == "rebuilt" else one.sentence, one.outcome)
        alike.setdefault(key, []).append(one.host)
    for (day, way, sentence, outcome), hosts in alike.items():
        ended = Text(outcome, style=STYLES[outcome]).append(f": {short(sentence)}" if sentence else "", style="default")
        shown.add_row(Text(printable(fold(hosts)), style="bold"), day, way, ended)
    return shown


def _ways(rebuilds: Iterable[Rebuild]) -> tuple[str, ...]:
    return tuple(sorted({one.way for one in rebuilds}))


def _of_phase(rebuilds: Iterable[Rebuild], name: str) -> list[tuple[float, str]]:
    return [(seconds, one.host) for one in rebuilds for phase, seconds in one.phases if phase == name]
