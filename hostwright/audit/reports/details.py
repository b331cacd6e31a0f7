"""One audited host in full: every value, every card, every Xid, and what could not be checked."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.audit.fleetaudit import HostAudit, NotChecked, Reading
from hostwright.audit.hardware.gpu import Gpu
from hostwright.common.text import local_time, printable, short

UNKNOWN = "–"


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
    names = ("  gpu", "model", "memory", "PCIe", "VBIOS", "ECC u/c", "retired or remapped", "°C", "W", "serial, UUID")
    for column in names:
        table.add_column(column, overflow="fold")
    for gpu in gpus:
        table.add_row(
            f"  {gpu.index} {short(gpu.bus)}",
            short(gpu.model),
            UNKNOWN if gpu.memory_bytes is None else f"{gpu.memory_bytes / 2**30:.0f} GiB",
            _pcie(gpu),
            short(gpu.vbios),
            f"{_number(gpu.ecc_volatile.uncorrected)}/{_number(gpu.ecc_volatile.corrected)}",
            _wear(gpu),
            _number(gpu.temperature),
            UNKNOWN if gpu.power is None else f"{gpu.power:.0f}",
            short(f"{gpu.serial} {gpu.uuid}".strip()),
        )
    return table


def _pcie(gpu: Gpu) -> str:
    generation = f"{_number(gpu.pcie_generation)} of {_number(gpu.pcie_generation_max)}"
    return f"gen {generation}, x{_number(gpu.pcie_width)} of {_number(gpu.pcie_width_max)}"


def _wear(gpu: Gpu) -> str:
    """Retired pages (before Ampere) or remapped rows (since)."""
    if gpu.remapped_corrected is not None or gpu.remapped_uncorrected is not None:
        pending = ", pending" if gpu.remap_pending else ""
        return f"{_number(gpu.remapped_uncorrected)}+{_number(gpu.remapped_corrected)} rows{pending}"
    if gpu.retired_single_bit is not None or gpu.retired_double_bit is not None:
        pending = ", pending" if gpu.retirement_pending else ""
        return f"{_number(gpu.retired_double_bit)}+{_number(gpu.retired_single_bit)} pages{pending}"
    return UNKNOWN


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _not_checked(not_checked: tuple[NotChecked, ...]) -> Iterator[Text]:
    """What could not be checked, by reason."""
    reasons: dict[str, list[str]] = {}
    for skipped in not_checked:
        reasons.setdefault(skipped.reason, []).append(f"{skipped.layer} {skipped.check}")
    for reason, checks in reasons.items():
        yield Text(f"  not checked: {', '.join(checks)}: {short(reason)}", style="dim")
