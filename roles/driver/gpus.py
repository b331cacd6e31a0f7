"""GPUs of a host, from nvidia-smi's report, the last seven days of the kernel log, and the PCI bus."""

from __future__ import annotations

from hostwright.failures import AuditContext, Cards, Unread, once
from hostwright.resources import PCI, Facts
from hostwright.roles import Gpu, GpuEvent
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI, NVLINKS, GpuReport, read_report
from hostwright.standard.roles.driver.states.gpu_use import gpu_ids
from hostwright.standard.roles.driver.xids.events import xid_events
from hostwright.standard.roles.driver.xids.kernellog import KERNEL_LOG, KernelLine, kernel_lines

NO_PROGRAM = 127  #: exit status of the shell if nvidia-smi is not installed


def same_model(one: str, other: str) -> bool:
    """Return whether ``one`` and ``other`` are names of the same GPU model.

    Some drivers put the vendor before the name, and CUDA appends the profile of a MIG device.

    >>> same_model("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB")
    True
    >>> same_model("NVIDIA H100 NVL MIG 3g.47gb", "NVIDIA H100 NVL")
    True
    """
    return _card(one) == _card(other)


def _card(name: str) -> str:
    return " ".join(name.split()).removeprefix("NVIDIA ").partition(" MIG ")[0]


@once
def smi(ctx: AuditContext) -> GpuReport:
    """Return nvidia-smi's report. Raises ``Unread`` if nvidia-smi failed, or printed no report."""
    answer = ctx.answer(NVIDIA_SMI)
    if not answer.ok:
        raise Unread(f"nvidia-smi ended with status {answer.status}")
    links = ctx.facts[NVLINKS].text if NVLINKS in ctx.facts and ctx.facts[NVLINKS].ok else ""
    try:
        return read_report(answer.text, links)
    except ValueError as error:
        raise Unread(f"nvidia-smi's report cannot be read: {error}") from error


@once
def kernel_log(ctx: AuditContext) -> tuple[KernelLine, ...]:
    """Return the kernel's messages about GPUs in the last seven days. Raises ``Unread`` if the log cannot be read."""
    if ctx.answer(KERNEL_LOG).status == 1:  # status 1 means that neither the journal nor a file has kernel messages
        raise Unread("no kernel messages are in the journal, /var/log/kern.log or its last rotated copy")
    return kernel_lines(ctx.text(KERNEL_LOG), ctx.minute)


def _gpus(ctx: AuditContext) -> tuple[Gpu, ...]:
    return smi(ctx).gpus


def _events(ctx: AuditContext) -> tuple[GpuEvent, ...]:
    return xid_events(kernel_log(ctx))


def _on_bus(facts: Facts) -> int:
    return len(gpu_ids(facts))


def _driven(facts: Facts) -> bool:
    return NVIDIA_SMI in facts and facts[NVIDIA_SMI].status != NO_PROGRAM and _on_bus(facts) > 0


CARDS = Cards((NVIDIA_SMI, NVLINKS, KERNEL_LOG, PCI), _gpus, _events, _on_bus, _driven)
