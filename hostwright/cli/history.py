"""``invoke audit.history`` and ``invoke audit.diff``: what audits saw, over time."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from hostwright.apply.journal import state_root
from hostwright.audit.auditing import now
from hostwright.audit.history import Changed, Diff, Event, History, HostHistory
from hostwright.audit.reports.table import SHOWN, short
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, Call
from hostwright.cli.showing import local_time
from hostwright.common import durations
from hostwright.common.errors import InputError
from hostwright.inventory.patterns import fold

STATUS_STYLES = {status: style for status, (_, _, style) in SHOWN.items()}


def history(call: Call) -> int:
    """``invoke audit.history``."""
    fleet = call.fleet()
    since = _since(call["since"])
    archive = History(state_root())
    found = [archive.host_history(member.name, since, fleet.path) for member in call.members(fleet)]
    if call["json"]:
        print(json.dumps([asdict(one) for one in found], default=_json))
        return AS_DESIRED
    out = console.make_console()
    for one in found:
        out.print(_timeline(one))
    return AS_DESIRED


def diff(call: Call) -> int:
    """``invoke audit.diff``."""
    fleet = call.fleet()
    since = _since(call["since"])
    if since is None:
        raise InputError("say how far back: --since 7d", "--since")
    found = History(state_root()).diff(fleet.path, since)
    if call["hosts"]:
        found = _narrowed(found, {member.name for member in call.members(fleet)})
    if call["json"]:
        print(json.dumps(asdict(found), default=_json))
    else:
        console.make_console().print(_changes(found))
    return AS_DESIRED


def _since(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return now() - timedelta(seconds=durations.seconds(text))
    except ValueError as error:
        raise InputError(str(error), "--since") from error


def _json(value: object) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _timeline(one: HostHistory) -> RenderableType:
    if one.first is None or one.last is None:
        return Text.assemble((one.host, "bold"), "  no audit has looked at it yet", style="dim")
    head = Text.assemble((one.host, "bold"), f"  {one.status}", style=STATUS_STYLES.get(one.status or "unread", ""))
    head.append(f"  looked at from {local_time(one.first)} to {local_time(one.last)}", style="dim")
    events = [
        Text(f"  {local_time(event.at)}  ", style="dim").append(short(event.sentence), style=_style(event))
        for event in one.events
    ]
    return Group(head, *(events or [Text("  nothing has changed", style="dim")]))


def _style(event: Event) -> str:
    if event.kind == "status":
        return next((style for status, style in STATUS_STYLES.items() if status == event.after), "")
    return "red" if event.kind == "finding" and event.after is not None else ""


def _changes(found: Diff) -> RenderableType:
    if found.since is None or found.until is None:
        return Text("no audit of this inventory is recorded yet: run invoke audit", style="yellow")
    lines: list[RenderableType] = [
        Text(f"from the audit of {local_time(found.since)} to that of {local_time(found.until)}", style="bold")
    ]
    named = (
        ("no longer as desired", found.left, "red"),
        ("as desired again", found.reached, "green"),
        ("looked at for the first time", found.came, ""),
        ("not looked at any more", found.unseen, "yellow"),
        ("could not be read", found.unread, "magenta"),
    )
    for words, hosts, style in named:
        if hosts:
            lines.append(Text(f"  {words}: ", style=style).append(f"{console.printable(fold(hosts))} ({len(hosts)})"))
    lines += [_change(one) for one in (*found.deviations, *found.findings, *found.values)]
    if len(lines) == 1:
        lines.append(Text("  nothing has changed", style="green"))
    return Group(*lines)


def _change(one: Changed) -> Text:
    before, after = ("–" if value is None else short(value) or "nothing" for value in (one.before, one.after))
    text = Text(f"  {one.kind}  ", style="dim").append(f"{one.layer} {short(one.name)}".strip(), style="cyan")
    return text.append(f": {before} → {after}  ").append(f"on {console.printable(fold(one.hosts))}", style="dim")


def _narrowed(found: Diff, hosts: set[str]) -> Diff:
    """The diff of these hosts alone."""
    some = [replace(one, hosts=tuple(host for host in one.hosts if host in hosts)) for one in found.changes]
    named = [tuple(host for host in group if host in hosts) for group in (found.came, found.unseen, found.unread)]
    return Diff(found.since, found.until, tuple(one for one in some if one.hosts), *named)
