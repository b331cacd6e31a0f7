"""``invoke rebuild --report``: how long rebuilds took, against the target of ten minutes."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.cli.views.rebuilding.rebuilds import STYLES
from hostwright.common.text import count, printable, short
from hostwright.inventory.patterns import fold
from hostwright.rebuild.rebuild import TARGET_S, Outcome, Rebuild
from hostwright.rebuild.report import METHOD, Summary, Times, summarise


def times_table(records: Iterable[Rebuild]) -> RenderableType:
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
    """How each host's last rebuild ended; hosts that ended alike share one line."""
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
