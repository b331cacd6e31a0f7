"""One audited host in full: every value, every card, every Xid, and what could not be checked."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.audit.fleetaudit import HostAudit, NotChecked, Reading
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS, UNKNOWN
from hostwright.common.text import local_time, printable, short


def show_details(host: HostAudit) -> Iterator[RenderableType]:
    """Everything that an audit read on one host."""
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
    """What could not be checked, by reason."""
    reasons: dict[str, list[str]] = {}
    for skipped in not_checked:
        reasons.setdefault(skipped.reason, []).append(f"{skipped.layer} {skipped.check}")
    for reason, checks in reasons.items():
        yield Text(f"  not checked: {', '.join(checks)}: {short(reason)}", style="dim")
