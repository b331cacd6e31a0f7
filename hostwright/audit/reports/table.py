"""An audit for a terminal: the worst hosts first, equal hosts on one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hostwright.audit.fleetaudit import (
    Deviation,
    FleetAudit,
    HostAudit,
    LayerStatus,
    NotChecked,
    Reading,
    ValueSpread,
    have_several_stacks,
)
from hostwright.audit.found.groups import by_hand
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS, UNKNOWN
from hostwright.audit.reports.ages import Ages, since
from hostwright.audit.reports.found import show_found
from hostwright.common.command import Command
from hostwright.common.errors import Finding, led
from hostwright.common.text import count, local_time, printable, short, shown_seconds
from hostwright.inventory.patterns import fold, headed
from hostwright.stack.store.artifacts import stand_ins_line

#: symbol, word and style of each status, in the order in which hosts are listed
SHOWN: dict[LayerStatus, tuple[str, str, str]] = {
    "failing": ("✗", "failing", "bold red"),
    "drift": ("~", "drift", "red"),
    "differs": ("≠", "differs", "red"),
    "intent": ("»", "intent", "cyan"),
    "new": ("+", "new", "blue"),
    "unread": ("?", "not read", "magenta"),
    "warning": ("!", "warning", "yellow"),
    "desired": ("✓", "", "green"),
}
WORDS: dict[LayerStatus, str] = {
    "unread": "could not be read",
    "failing": "failing",
    "drift": "drifted",
    "differs": "differing from the stack",
    "intent": "behind a changed stack",
    "new": "never provisioned",
    "warning": "with warnings",
    "desired": "as desired",
}
_UNBOUNDED = 100_000  #: width in columns of an output that is not wrapped
ABSENT = "·"  #: mark for a layer that a host does not have


def show_audit(
    audit: FleetAudit, ages: Ages, *, details: bool = False, columns: int | None = None, first: bool = False
) -> Group:
    """Return the whole audit for a terminal with ``columns`` columns (``None``: unlimited).

    ``details`` adds every value, every GPU, and every deviation of hosts that were never provisioned. With ``first``,
    the summary is at the top instead of the end.
    """
    hosts = by_hand(audit.hosts)
    judged = replace(audit, hosts=tuple(host for host in audit.hosts if host.status != "new" or host not in hosts))
    matrix = _matrix(judged, ages)
    wide = Measurement.get(Console(), Console().options.update(width=_UNBOUNDED), matrix).maximum
    parts: list[RenderableType] = [_headline(audit), Text("")] if first else []
    if judged.hosts:
        parts += [matrix] if columns is None or wide <= columns else [*_by_status(judged, ages)]
    parts += show_found(hosts)
    parts += _blocks(audit.hosts, ages, details=details)
    parts += _unread(audit.hosts)
    parts += _spreads(audit.spreads, {(one.layer, one.name) for host in hosts for one in host.readings if one.found})
    parts += _aged(audit.hosts)
    if details:
        parts += [part for host in audit.hosts if host.status != "unread" for part in show_details(host)]
    parts += _stand_ins(audit.hosts)
    parts += [] if first else (Text(""), _headline(audit))
    return Group(*parts)


_NEXT = {"failing": Command("doctor"), **dict.fromkeys(("drift", "differs", "intent", "new"), Command("plan"))}


def next_hosts(audit: FleetAudit) -> Mapping[Command, Sequence[str]]:
    """Return the commands to run after ``audit``, each with its hosts.

    Problems are diagnosed before anything is changed. For a host that could not be read, the error names the command.
    """
    found: dict[Command, list[str]] = {}
    set_up = by_hand(audit.hosts)
    for host in sorted(audit.hosts, key=lambda host: (host.status != "failing", host.status != "unread")):
        if host.status == "unread":
            then = Command("audit") if audit.offline else led(host.lead, Command("audit"))
        else:
            then = Command("adopt") if host.status == "new" and host in set_up else _NEXT.get(host.status)
        if then:
            found.setdefault(then, []).append(host.host)
    return found


def _headline(audit: FleetAudit) -> Text:
    counts: Counter[LayerStatus] = Counter(host.status for host in audit.hosts)
    stacks = ", ".join(dict.fromkeys(printable(host.stack) for host in audit.hosts))
    how = "from stored facts" if audit.offline else f"in {shown_seconds(audit.took_s)}"
    text = Text.assemble((count(len(audit.hosts), "host"), "bold"), f" {how}, against {stacks}: ")
    parts = [(f"{counts[status]} {WORDS[status]}", SHOWN[status][2]) for status in SHOWN if counts[status]]
    return text.append(joined(parts))


def joined(parts: Iterable[tuple[str, str]]) -> Text:
    """Join pairs of a text and its style to one text, separated by commas."""
    return Text(", ").join(Text(words, style=style) for words, style in parts)


def names_below(below: str) -> list[Text]:
    """Return a line with ``below``, the host names that did not fit into a heading; no line if ``below`` is empty.

    ``headed`` returns the heading and ``below``.
    """
    return [Text(f"  {printable(below)}", style="dim")] if below else []


def _matrix(audit: FleetAudit, ages: Ages) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    rows = [*_rows(audit, ages)]
    mixed = ["stack"] if any(stack for _, stack, _, _ in rows) else []
    aged = ["since"] if any(lasting for *_, lasting in rows) else []
    for column in ("hosts", *mixed, *audit.layers, *aged):
        table.add_column(column, overflow="fold")
    for names, stack, statuses, lasting in rows:
        day = Text(lasting.removeprefix("since "), style="dim")
        table.add_row(names, *([stack] if mixed else []), *map(_cell, statuses), *([day] if aged else []))
    return table


def _by_status(audit: FleetAudit, ages: Ages) -> Iterator[Text]:
    layers = audit.layers
    for names, stack, statuses, lasting in _rows(audit, ages):
        yield names.append("".join(f"  {part}" for part in (stack, lasting) if part), style="dim")
        for status, (sign, word, style) in SHOWN.items():
            if there := [layer for layer, one in zip(layers, statuses, strict=True) if one == status]:
                yield Text.assemble((f"  {sign} {word or WORDS[status]}", style), f"  {', '.join(there)}")


def _rows(audit: FleetAudit, ages: Ages) -> Iterator[tuple[Text, str, tuple[LayerStatus | None, ...], str]]:
    blocks = {host.host for host in audit.hosts if _has_block(host) or host.sentence}
    mixed = have_several_stacks(audit.hosts)
    rows: dict[tuple[str, str, tuple[LayerStatus | None, ...]], list[str]] = {}
    layers = audit.layers
    for host in sorted(audit.hosts, key=_worst_first):
        layer_statuses = {layer.name: layer.status for layer in host.layers}
        statuses = tuple(map(layer_statuses.get, layers))
        rows.setdefault((host.status, host.stack if mixed else "", statuses), []).append(host.host)
    for (status, stack, statuses), hosts in rows.items():
        head, below = headed(hosts)
        named_below = status == "desired" or all(host in blocks for host in hosts)
        names = Text(
            printable(head if named_below or not below else below), style="bold" if status != "desired" else ""
        )
        yield names, printable(stack), statuses, "" if status == "desired" else since(ages, hosts, "status", "")


def _worst_first(host: HostAudit) -> tuple[int, str]:
    return list(SHOWN).index(host.status), host.host


def _cell(status: LayerStatus | None) -> Text:
    if status is None:
        return Text(ABSENT, style="dim")
    sign, word, style = SHOWN[status]
    return Text(f"{sign} {word}".strip(), style=style)


def _blocks(hosts: Iterable[HostAudit], ages: Ages, *, details: bool) -> Iterator[RenderableType]:
    alike: dict[tuple[object, ...], list[HostAudit]] = {}
    for host in sorted(hosts, key=_worst_first):
        if _has_block(host):
            lacks = len(host.deviations) if _is_brief(host, details=details) else host.deviations
            alike.setdefault((host.status, lacks, host.findings, host.notes), []).append(host)
    for group in alike.values():
        first, names = group[0], [host.host for host in group]
        style = SHOWN[first.status][2]
        head, below = headed(names)
        title = Text.assemble("\n", (printable(head), f"bold {style}"), (f"  {WORDS[first.status]}", style))
        if brief := _is_brief(first, details=details):
            layers = count(len({deviation.layer for deviation in first.deviations}), "layer")
            title.append(f": {count(len(first.deviations), 'state')} in {layers} (--details lists them)", style="dim")
        yield title
        yield from names_below(below)
        yield from (Text(f"  {short(note)}", style="yellow") for note in first.notes)
        yield from (_deviation(deviation, names, ages) for deviation in first.deviations if not brief)
        yield from (_finding(finding, names, ages) for finding in first.findings)
        # For failing hosts, the last line of the report already names the command ``doctor``.
        if first.findings and first.status != "failing":
            doctor = Command("doctor", hosts="" if below else fold(names))
            yield Text(f"  causes and fixes: {doctor}", style="dim")


def _aged(hosts: Iterable[HostAudit]) -> Iterator[RenderableType]:
    found: dict[str, list[str]] = {}
    for host in hosts:
        for one in host.aged:
            found.setdefault(one.sentence, []).append(host.host)
    if found:
        yield Text("\nages and security bulletins (`hostwright stacks` has details)", style="dim")
    for sentence, names in found.items():
        yield Text.assemble((f"  {short(sentence)}", "yellow"), (f"  {fold(names)}", "dim"))


def _has_block(host: HostAudit) -> bool:
    return bool(host.deviations or host.findings or host.notes)


def _is_brief(host: HostAudit, *, details: bool) -> bool:
    """Return whether the deviations of ``host`` are only counted, because a host that was never provisioned lacks
    nearly everything.
    """
    return len(host.deviations) > 1 and not details and all(one.why == "new" for one in host.deviations)


def _deviation(deviation: Deviation, hosts: Sequence[str], ages: Ages) -> Text:
    sign, word, style = SHOWN[deviation.why]
    text = Text.assemble((f"  {sign} ", style), (f"{deviation.layer}  ", "cyan"))
    text.append(f"{short(deviation.what)}: {short(deviation.have)} → {short(deviation.want)}", style=style)
    lasting = since(ages, hosts, "deviation", f"{deviation.layer} {deviation.what}")
    return text.append(f"  {word} {lasting}".rstrip(), style="dim")


def _finding(finding: Finding, hosts: Sequence[str], ages: Ages) -> Text:
    sign, _, style = SHOWN["failing" if finding.grave else "warning"]
    text = Text.assemble((f"  {sign} ", style), (f"{finding.layer}  ", "cyan"))
    text.append(f"{finding.rule}: {short(finding.evidence[0])}", style=style)
    return text.append(f"  {since(ages, hosts, 'finding', finding.rule)}".rstrip(), style="dim")


def _unread(hosts: Iterable[HostAudit]) -> Iterator[RenderableType]:
    sentences: dict[str, list[str]] = {}
    for host in hosts:
        if host.sentence:
            sentences.setdefault(host.sentence, []).append(host.host)
    for sentence, names in sentences.items():
        head, below = headed(names)
        yield Text.assemble("\n", (printable(head), "bold magenta"), ("  could not be read", "magenta"))
        yield from names_below(below)
        yield Text(f"  {printable(sentence)}")


def _spreads(spreads: Iterable[ValueSpread], grouped: Collection[tuple[str, str]]) -> Iterator[RenderableType]:
    differing = [spread for spread in spreads if len(spread.values) > 1 and (spread.layer, spread.name) not in grouped]
    if differing:
        yield Text("\nvalues that no stack pins and that differ between hosts", style="bold")
    for spread in differing:
        among = f" ({printable(spread.among)})" if spread.among else ""
        yield Text(f"  {spread.layer}  ", style="cyan").append(f"{spread.name}{among}", style="default")
        for value, hosts in spread.values:
            outlying = bool(spread.majority) and value != spread.majority
            text = Text(f"      {count(len(hosts), 'host')}: ", style="yellow" if outlying else "dim")
            yield text.append(f"{short(value) or 'nothing'}  ").append(printable(fold(hosts)), style="dim")


def _stand_ins(hosts: Iterable[HostAudit]) -> Iterator[RenderableType]:
    files = dict.fromkeys(name for host in hosts for name in host.stand_ins)
    if files:
        yield from (Text(""), Text(stand_ins_line(files), style="magenta"))


def show_details(host: HostAudit) -> Iterator[RenderableType]:
    """Yield all values that an audit read on ``host``."""
    yield Text.assemble("\n", (printable(host.host), "bold"), f"  read {short(local_time(host.at))}", *_groups(host))
    if host.record:
        by = f"{host.record.stack} at {local_time(host.record.at)} by {host.record.operator} (run {host.record.run})"
        yield Text(f"  last good run: {short(by)}", style="dim")
    yield _readings(host.readings)
    if host.gpus:
        yield _gpus(host.gpus)
    for xid in host.xids:
        times = f", {xid.count} times" if xid.count > 1 else ""
        at = f", {local_time(xid.at)}" if xid.at else ""
        yield Text(f"  Xid {xid.number} on {short(xid.bus)}{at}{times}: {short(xid.text)}", style="yellow")
    yield from _not_checked(host.not_checked)


def _groups(host: HostAudit) -> list[str]:
    return [f"  groups {', '.join(map(printable, host.groups))}"] if host.groups else []


def _readings(readings: tuple[Reading, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2))
    for column in ("  layer", "value", "have", "stack"):
        table.add_column(column, overflow="fold")
    for reading in readings:
        style = "red" if reading.differs else ""
        want = "" if reading.want is None else "=" if not reading.differs else short(reading.want) or "nothing"
        table.add_row(
            Text(f"  {reading.layer}", style="cyan"),
            reading.name,
            Text(short(reading.have) or UNKNOWN, style=style),
            want,
        )
    return table


def _gpus(gpus: tuple[Gpu, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2))
    shown = [column for column in GPU_COLUMNS if column.head]
    for head in ("  gpu", *(column.head for column in shown), "serial, UUID"):
        table.add_column(head, overflow="fold")
    for gpu in gpus:
        values = (short(column.text(gpu)) or UNKNOWN for column in shown)
        table.add_row(f"  {gpu.index} {short(gpu.bus)}", *values, short(f"{gpu.serial} {gpu.uuid}".strip()))
    return table


def _not_checked(not_checked: tuple[NotChecked, ...]) -> Iterator[Text]:
    reasons: dict[str, list[str]] = {}
    for skipped in not_checked:
        reasons.setdefault(skipped.reason, []).append(f"{skipped.layer} {skipped.check}")
    for reason, checks in reasons.items():
        yield Text(f"  not checked: {', '.join(checks)}: {short(reason)}", style="dim")
