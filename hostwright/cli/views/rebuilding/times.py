"""Prints the report of ``invoke rebuild --report``: durations of rebuilds compared with the target of ten minutes."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.cli import console
from hostwright.cli.views.rebuilding.rebuilds import GOOD, STYLES
from hostwright.common.text import count, printable, short, shown_seconds
from hostwright.inventory.patterns import counted, headed
from hostwright.rebuild.rebuild import TARGET_S, Outcome, Rebuild
from hostwright.rebuild.report import Summary, Times, summarise

METHOD_SHOWN = "p95: 95 of 100 took no longer; for fewer than 20, the slowest"


def times_table(records: Iterable[Rebuild]) -> RenderableType:
    """Return the report on the durations of the rebuilds in ``records``."""
    summary = summarise(records)
    if not summary.last:
        return Text("no rebuild is recorded yet", style="dim")
    outcomes = ", ".join(f"{number} {name}" for name, number in summary.outcomes)
    hosts = count(len(summary.last), "host")
    parts: list[RenderableType] = [Text.assemble((f"rebuilds of {hosts}", "bold"), f": {outcomes}")]
    if summary.total:
        parts += [_times(summary, summary.total), Text(METHOD_SHOWN, style="dim")]
    for way, names in summary.slow:
        parts.append(Text(f"longer than {TARGET_S / 60:.0f} min: {printable(counted(names))} ({way})", style="yellow"))
    return Group(*parts, Text(""), _last(summary.last))


def _times(summary: Summary, total: Times) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("")
    for column in ("rebuilds", "median", "p95", "longest", f"within {TARGET_S / 60:.0f} min"):
        shown.add_column(column, justify="right")
    shown.add_column("slowest", overflow="fold")
    for times in summary.phases:
        shown.add_row(*_row(times), "", Text(printable(times.slowest), style="dim"))
    for times in (*summary.ways, total):
        style = "green" if times.p95_s <= TARGET_S else "yellow"
        ratio = Text(f"{times.within} of {times.number}", style=style)
        shown.add_row(*_row(times, style="bold"), ratio, Text(printable(times.slowest), style="dim"))
    return shown


def _row(times: Times, style: str = "") -> tuple[RenderableType, ...]:
    seconds = (times.median_s, times.p95_s, times.longest_s)
    return Text(times.name, style=style or "cyan"), str(times.number), *map(shown_seconds, seconds)


def _last(rebuilds: Iterable[Rebuild]) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("hosts", "last rebuild", "way", "ended"):
        shown.add_column(column, overflow="fold")
    alike: dict[tuple[str, str, str, Outcome], list[str]] = {}
    for rebuild in rebuilds:
        key = (
            f"{rebuild.at:%Y-%m-%d}",
            rebuild.way,
            "" if rebuild.outcome == "rebuilt" else rebuild.sentence,
            rebuild.outcome,
        )
        alike.setdefault(key, []).append(rebuild.host)
    for (day, way, sentence, outcome), hosts in alike.items():
        ended = Text(outcome, style=STYLES[outcome]).append(f": {short(sentence)}" if sentence else "", style="default")
        # names of many successful hosts would hide the failed ones
        names = headed(hosts)[0] if outcome in GOOD else counted(hosts)
        shown.add_row(console.Hanging(printable(names), style="bold"), day, way, ended)
    return shown
