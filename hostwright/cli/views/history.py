"""Prints the history of audits: a list of changes for each host, or the changes of all hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hostwright.audit.fleetaudit import Status
from hostwright.audit.history import FleetChange, FleetDiff, HistoryEvent, HostHistory
from hostwright.audit.history.items import DEVIATION, FINDING, LAYER
from hostwright.audit.reports.table import SHOWN, WORDS
from hostwright.cli.console import Hanging
from hostwright.common.command import Command
from hostwright.common.text import local_time, printable, short
from hostwright.inventory.patterns import counted, headed

MOST_NAMED = 2  #: maximum number of printed names per kind of change in a layer
STATUS_STYLES = {status: style for status, (_, _, style) in SHOWN.items()}


def timelines(histories: Iterable[HostHistory], *, details: bool = False) -> Iterator[RenderableType]:
    """Yield the audit history of each host: its status, then a line for each audit and changed layer, oldest first.

    With ``details``, each change has its own line. Hosts with equal histories are printed together.
    """
    alike: dict[tuple[str, ...], tuple[list[str], list[Text]]] = {}
    for history in histories:
        lines = [*_lines(history, details=details)]
        alike.setdefault(tuple(line.plain for line in lines), ([], lines))[0].append(history.host)
    for hosts, (status, *events) in alike.values():
        head, below = headed(hosts)
        names = [Hanging(f"  {printable(below)}", style="dim")] if below else []
        yield Group(Hanging.assemble((printable(head), "bold"), "  ", status), *names, *events)


def _lines(history: HostHistory, *, details: bool) -> Iterator[Text]:
    if history.first is None or history.last is None:
        yield Text("not audited yet", style="dim")
        return
    status: Status = history.status or "unread"
    first, last = local_time(history.first), local_time(history.last)
    audited = f"  audited from {first} to {last}" if first != last else f"  audited once, {first}"
    yield Text.assemble((WORDS[status], STATUS_STYLES[status]), (audited, "dim"))
    together: dict[object, list[HistoryEvent]] = {}
    for number, event in enumerate(history.events):
        together.setdefault(number if details or not event.layer else (event.at, event.layer), []).append(event)
    for events in together.values():
        style = next(filter(None, map(_style, events)), "")
        yield Hanging.assemble((f"  {local_time(events[0].at)}  ", "dim"), (_told(events), style))
    if not history.events:
        yield Text("  nothing has changed", style="dim")


def _told(events: Sequence[HistoryEvent]) -> str:
    layer, others = events[0].layer, [event for event in events if event.kind != LAYER]
    if len(events) == 1:
        return _bounded(events[0], _sentence(events[0]))
    parts = [_sentence(event).removeprefix(f"{layer}: ") for event in events if event.kind == LAYER]
    named: dict[str, list[str]] = {}
    for event in others:
        name = event.name if event.kind in (DEVIATION, FINDING) else _bare(event)
        named.setdefault(_heading(event), []).append(_bounded(event, name))
    if len(others) == 1:
        return f"{printable(layer)}: {'; '.join([*map(short, parts), _bounded(others[0], _bare(others[0]))])}"
    for heading, names in named.items():
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        parts.append(heading + ", ".join([*names[:MOST_NAMED], *more]))
    return f"{printable(layer)}: {'; '.join(parts)}"


def _bounded(event: HistoryEvent, sentence: str) -> str:
    return printable(sentence) if event.in_full else short(sentence)


def _heading(event: HistoryEvent) -> str:
    match event.kind:
        case "deviation":
            return "as desired again: " if event.after is None else "not as desired: "
        case "finding":
            return "no longer found: " if event.after is None else "found: "
    return ""


def _bare(event: HistoryEvent) -> str:
    return event.sentence.removeprefix(f"{event.layer} ")


def _sentence(event: HistoryEvent) -> str:
    if event.kind != "status":
        return event.sentence
    shown = {str(status): word for status, word in WORDS.items()}
    words = [shown.get(status, status) for status in (event.before, event.after) if status]
    return " → ".join(words) + (f" ({event.note})" if event.note else "")


def _style(event: HistoryEvent) -> str:
    if event.kind == "status":
        return next((style for status, style in STATUS_STYLES.items() if status == event.after), "")
    return "red" if event.kind == "finding" and event.after is not None else ""


def changes(difference: FleetDiff) -> RenderableType:
    """Return ``difference``, the changes on all hosts between two audits, as text."""
    if difference.since is None or difference.until is None:
        return Text(f"no audit of this inventory is recorded yet: run {Command('audit')}", style="yellow")
    lines: list[RenderableType] = [
        Text(
            f"from the audit of {local_time(difference.since)} to that of {local_time(difference.until)}", style="bold"
        )
    ]
    named = (
        ("no longer as desired", difference.left, "red"),
        ("as desired again", difference.reached, "green"),
        ("audited for the first time", difference.came, ""),
        ("no longer audited", difference.unseen, "yellow"),
        ("could not be read", difference.unread, "magenta"),
    )
    for words, hosts, style in named:
        if hosts:
            lines.append(Text(f"  {words}: ", style=style).append(printable(counted(hosts))))
    lines += [_change(change) for change in (*difference.deviations, *difference.findings, *difference.values)]
    if len(lines) == 1:
        lines.append(Text("  nothing has changed", style="green"))
    return Group(*lines)


def _change(change: FleetChange) -> Text:
    before, after = ("–" if value is None else short(value) or "nothing" for value in (change.before, change.after))
    text = Text(f"  {change.kind}  ", style="dim").append(f"{change.layer} {short(change.name)}".strip(), style="cyan")
    return text.append(f": {before} → {after}  ").append(f"on {printable(counted(change.hosts))}", style="dim")
