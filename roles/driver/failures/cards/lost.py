"""Failure rule for a GPU that fell off the bus according to the kernel log or nvidia-smi."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hostwright.failures import AuditContext, Sign, Unread
from hostwright.roles import Pattern
from hostwright.standard.roles.driver.gpus import kernel_log, smi
from hostwright.standard.roles.driver.nvsmi.fields import LOST
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI, GpuReport
from hostwright.standard.roles.driver.xids.events import loaded_at, slot
from hostwright.standard.roles.driver.xids.kernellog import KernelLine

#: exit status of nvidia-smi for a card that fell off the bus (nvidia-smi(1), "RETURN VALUE")
EXIT_LOST = 15

#: pattern of a card's PCI address. Since R530, nvidia-smi prints ``GPU0000:07:00.0`` without a space.
_ADDRESS = Pattern(r"(?:\b|GPU)([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)(?:[^0-9A-Fa-f:]|$)")
# pattern of the log line with the card's address. The log line with the fault follows this line.
_NAMED = Pattern(r"NVRM: The NVIDIA GPU ")
_LOST = Pattern(
    r"fallen off the bus|GPU is lost|Unable to determine the device handle for .+(?:Unknown Error|Not Found)"
)
_STATUS = Pattern(r"nvidia-smi ended with status ([0-9]{1,3})")


def smi_status(ctx: AuditContext) -> int:
    """Return the exit status of nvidia-smi. Raises ``Unread`` if nvidia-smi was not run."""
    status, report = ctx.answer(NVIDIA_SMI).status, _report(ctx)
    notices = [match for match in map(_STATUS.fullmatch, report.notices if report else ()) if match]
    return int(notices[-1][1]) if notices else status


def lost_gpus(ctx: AuditContext) -> Mapping[str, str]:
    """Return PCI slot (``0000:3b:00``, empty if unknown) → line that reports the card as fallen off the bus.

    A card that nvidia-smi describes normally is not lost. Log lines from before the last load of the module do not
    count. Raises ``Unread`` if neither the log nor nvidia-smi can be read.
    """
    log, report = _log(ctx), _report(ctx)
    by_bus = _slots(line.text for line in _since_loaded(log or ()))
    if report:
        here = {slot(gpu.bus) for gpu in report.gpus if gpu.fault != LOST}
        by_bus = {bus: text for bus, text in by_bus.items() if bus and bus not in here}
    by_smi = _told(ctx, report)
    by_bus |= {bus: f"nvidia-smi: {text}" for bus, text in by_smi.items() if bus not in by_bus}
    if not by_bus and log is None and report is None:
        raise Unread("neither the kernel log nor the output of nvidia-smi can be read")
    return {bus: text for bus, text in by_bus.items() if bus or len(by_bus) == 1}


def gpu_lost(ctx: AuditContext) -> Iterator[str]:
    """Since the module was loaded, the kernel log has an Xid 79 or "fallen off the bus" for a card that nvidia-smi does
    not describe, or nvidia-smi itself reports a lost card (exit status 15, "GPU is lost").
    """
    for bus, text in sorted(lost_gpus(ctx).items()):
        yield f"card at {bus}: {text}" if bus else text


GPU_LOST_SIGN = Sign("gpu", gpu_lost)


def _log(ctx: AuditContext) -> tuple[KernelLine, ...] | None:
    try:
        return kernel_log(ctx)
    except Unread:
        return None


def _report(ctx: AuditContext) -> GpuReport | None:
    try:
        return smi(ctx)
    except Unread:
        return None


def _since_loaded(log: tuple[KernelLine, ...]) -> Iterator[KernelLine]:
    loaded = loaded_at(log)
    return (line for line in log if loaded is None or line.at is None or line.at >= loaded)


def _told(ctx: AuditContext, report: GpuReport | None) -> dict[str, str]:
    """Return PCI slot → nvidia-smi's message about a lost card.

    Process names in ``report`` are ignored, because they can be any text.
    """
    if report:
        by_bus = {slot(gpu.bus): f"card {gpu.index}: {gpu.fault}" for gpu in report.gpus if gpu.fault == LOST}
        by_bus |= {bus: text for bus, text in _slots(report.notices).items() if bus not in by_bus}
    elif NVIDIA_SMI in ctx.facts:
        by_bus = _slots(ctx.facts[NVIDIA_SMI].text.split("\n"))
    else:
        return {}
    if not by_bus and NVIDIA_SMI in ctx.facts and smi_status(ctx) == EXIT_LOST:
        return {"": f"ended with status {EXIT_LOST}"}
    return by_bus


def _slots(lines: Iterable[str]) -> dict[str, str]:
    by_bus: dict[str, str] = {}
    named = ""
    for line in lines:
        if _NAMED.search(line):
            named = _slot_in(line)
        if _LOST.search(line):
            by_bus.setdefault(_slot_in(line) or named, line.strip())
    return by_bus


def _slot_in(line: str) -> str:
    match = _ADDRESS.search(line)
    return slot(match[1]) if match else ""
