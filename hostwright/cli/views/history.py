"""What audits saw over time: a timeline per host, and what changed across the fleet."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from hostwright.audit.history import Changed, Diff, HistoryEvent, HostHistory
from hostwright.audit.reports.table import SHOWN
from hostwright.cli.views.shared import local_time
from hostwright.common.text import printable, short
from hostwright.inventory.patterns import fold

STATUS_STYLES = {status: style for status, (_, _, style) in SHOWN.items()}


def timeline(one: HostHistory) -> RenderableType:
    """What audits saw of one host, the oldest first."""
    if one.first is None or one.last is None:
        return Text.assemble((one.host, "bold"), "  not audited yet", style="dim")
    head = Text.assemble((one.host, "bold"), f"  {one.status}", style=STATUS_STYLES.get(one.status or "unread", ""))
    head.append(f"  audited from {local_time(one.first)} to {local_time(one.last)}", style="dim")
    events = [
        Text(f"  {local_time(event.at)}  ", style="dim").append(short(event.sentence), style=_style(event))
        for event in one.events
    ]
    return Group(head, *(events or [Text("  nothing has changed", style="dim")]))


def _style(event: HistoryEvent) -> str:
    if event.kind == "status":
        return next((style for status, style in STATUS_STYLES.items() if status == event.after), "")
    return "red" if event.kind == "finding" and event.after is not None else ""


def changes(found: Diff) -> RenderableType:
    """What changed."""
    if found.since is None or found.until is None:
        return Text("no audit of this inventory is recorded yet: run invoke audit", style="yellow")
    lines: list[RenderableType] = [
        Text(f"from the audit of {local_time(found.since)} to that of {local_time(found.until)}", style="bold")
    ]
    named = (
        ("no longer as desired", found.left, "red"),
        ("as desired again", found.reached, "green"),
        ("audited for the first time", found.came, ""),
        ("no longer audited", found.unseen, "yellow"),
        ("could not be read", found.unread, "magenta"),
    )
    for words, hosts, style in named:
        if hosts:
            lines.append(Text(f"  {words}: ", style=style).append(f"{printable(fold(hosts))} ({len(hosts)})"))
    lines += [_change(one) for one in (*found.deviations, *found.findings, *found.values)]
    if len(lines) == 1:
        lines.append(Text("  nothing has changed", style="green"))
    return Group(*lines)


def _change(one: Changed) -> Text:
    before, after = ("–" if value is None else short(value) or "nothing" for value in (one.before, one.after))
    text = Text(f"  {one.kind}  ", style="dim").append(f"{one.layer} {short(one.name)}".strip(), style="cyan")
    return text.append(f": {before} → {after}  ").append(f"on {printable(fold(one.hosts))}", style="dim")
