"""Audit contexts of hosts with GPUs, for hardware rules: healthy except for a test's changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.hardware.gpu import EccCounts, Gpu, GpuLink, GpuProcess
from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.plan.desired import Desired
from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.failures.cards.health import HEALTH
from hostwright.standard.roles.driver.failures.cards.links import ACS, LINKS
from hostwright.standard.roles.driver.failures.cards.lost import GPU_LOST_SIGN
from hostwright.standard.roles.driver.failures.cards.memory import MEMORY
from hostwright.standard.roles.driver.failures.cards.smi import SMI
from hostwright.standard.roles.driver.failures.cards.xids import XIDS
from hostwright.standard.roles.driver.failures.state import BOOTED
from hostwright.standard.roles.driver.failures.units import PERSISTENCED, UNITS
from hostwright.standard.roles.driver.gpus import kernel_log
from hostwright.standard.roles.driver.gpus import smi as smi_report
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI, GpuReport
from hostwright.standard.roles.driver.states.fabric import FABRIC
from hostwright.standard.roles.driver.xids.kernellog import KERNEL_LOG, KernelLine
from tests.unit.support import stacks
from tests.unit.support.known import CARDS, KNOWN

DESIRED = Desired("gpu01", stacks.load_stack("tensorflow-2.9"), (), rules=stacks.RULES)
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
GONE = FailureRule("gpu-lost", "", "a", "B", "c", sign=GPU_LOST_SIGN)
ALL = (*XIDS, *SMI, *MEMORY, *HEALTH, *LINKS, GONE)
RULES = {rule.name: rule for rule in ALL}

ZERO = EccCounts(0, 0, 0, 0, 0, 0)
T4 = Gpu(
    0, "0000:3b:00.0", "GPU-1", "Tesla T4", vbios="90.04.38.00.03", pcie_generation=1, pcie_generation_max=3,
    pcie_width=16, pcie_width_max=16, pcie_replays=0, ecc=True, ecc_volatile=ZERO, ecc_aggregate=ZERO,
    retired_single_bit=0, retired_double_bit=0, retirement_pending=False, persistence=True, slowdowns=("gpu_idle",),
    temperature=38, temperature_slowdown=93, temperature_maximum=96, power=9.5, power_limit=70.0, performance="P8",
)  # fmt: skip
A100 = Gpu(
    0, "0000:3b:00.0", "GPU-1", "NVIDIA A100-SXM4-40GB", vbios="92.00.19.00.01", pcie_generation=4,
    pcie_generation_max=4, pcie_width=16, pcie_width_max=16, ecc=True, ecc_volatile=ZERO, ecc_aggregate=ZERO,
    remapped_corrected=0, remapped_uncorrected=0, remap_pending=False, remap_failed=False, persistence=True, mig=False,
    mig_instances=0, slowdowns=("sw_power_cap", "applications_clocks_setting", "sync_boost"), temperature=71,
    temperature_slowdown=89, temperature_maximum=92, power=398.2, power_limit=400.0, performance="P0",
    links=tuple(GpuLink(number, True) for number in range(12)), processes=(GpuProcess(7, "python3", "C", 2**30),),
)  # fmt: skip
DAEMON = Answer(0, f"Id={PERSISTENCED}\nLoadState=loaded\nActiveState=active\nSubState=running\nResult=success\n")
SILENT = Gpu(0, "0000:3b:00.0")  # reports N/A for every value


def cards(card: Gpu, count: int = 2) -> tuple[Gpu, ...]:
    """``count`` cards like this one, each with its own PCI address."""
    return tuple(replace(card, index=n, bus=f"0000:{0x3B + n:02x}:00.0", uuid=f"GPU-{n}") for n in range(count))


def line(text: str, hours: float = 1.0) -> KernelLine:
    """A line of the kernel log from ``hours`` hours ago."""
    return KernelLine(NOW - timedelta(hours=hours), text)


def xid(number: int, bus: str = "3b", hours: float = 1.0) -> KernelLine:
    return line(f"NVRM: Xid (PCI:0000:{bus}:00): {number}, pid=7, its words", hours)


def audit_context(
    *gpus: Gpu,
    log: Iterable[KernelLine] | None = (),
    smi: Answer | None = None,
    notices: tuple[str, ...] = (),
    on_bus: int | None = None,
    switches: int = 0,
    answers: Mapping[Any, Answer] | None = None,
    roles: tuple[str, ...] = ("driver",),
) -> AuditContext:
    """The audit context of a host whose nvidia-smi reports these cards; ``smi`` replaces its report.

    By default, the bus has as many cards as are reported, or two if none are; ``on_bus`` sets another number.
    """
    bus = (
        "0x10de 0x030200 0x1eb8\n" * (len(gpus) or 2 if on_bus is None else on_bus)
        + "0x10de 0x068000 0x1af1\n" * switches
    )
    said = {
        PCI: Answer(0, bus),
        FABRIC: Answer(0, ""),
        NVIDIA_SMI: smi or Answer(0, "<a report>"),
        ACS: Answer(0, ""),
        BOOTED: Answer(0, f"{(NOW - timedelta(days=1)).timestamp():.0f}\n"),
        UNITS.states: DAEMON,
    }
    if log is None:
        said[KERNEL_LOG] = Answer(1, "")
    facts = Facts({**said, **(answers or {})})
    found = AuditContext(DESIRED, {}, facts, dict.fromkeys(roles, ()), NOW, CARDS, KNOWN.named)
    if smi is None:
        found.judged(smi_report, lambda _: GpuReport("470.182.03", "11.4", gpus, len(gpus), notices))
    if log is not None:
        found.judged(kernel_log, lambda _: tuple(log))
    return found


def seen(name: str, at: AuditContext) -> list[str]:
    """The evidence for one rule."""
    sign = RULES[name].sign
    assert sign is not None
    return list(sign.seen(at))


def all_seen(at: AuditContext) -> dict[str, list[str]]:
    """The evidence for all rules that match, except rules that cannot decide."""
    found = {}
    for name in RULES:
        try:
            evidence = seen(name, at)
        except Unread:
            continue
        if evidence:
            found[name] = evidence
    return found


def unread(name: str, at: AuditContext) -> bool:
    """Whether a rule cannot decide."""
    try:
        seen(name, at)
    except Unread:
        return True
    return False


def only(at: AuditContext, name: str) -> str:
    """The only line of evidence; fails if other rules match."""
    found = all_seen(at)
    if list(found) != [name] or len(found[name]) != 1:
        pytest.fail(f"expected one line for {name} alone, got {found}")
    return found[name][0]
