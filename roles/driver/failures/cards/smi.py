"""Failures of cards that the exit status of nvidia-smi reports.

The statuses come from nvidia-smi's manual, "RETURN VALUE". Other rules cover statuses about the driver, such as 9 (no
module).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from hostwright.failures import AuditContext, Case, FailureRule, Hardware, Sign, Unread
from hostwright.roles import Pattern
from hostwright.standard.roles.driver.failures.cards.lost import lost_gpus, smi_status
from hostwright.standard.roles.driver.failures.cards.memory import card
from hostwright.standard.roles.driver.failures.cards.treatments import CYCLE, NO_POWER, REBOOT
from hostwright.standard.roles.driver.failures.cards.xids import POWER_CYCLE, sorted_xids, xid_line
from hostwright.standard.roles.driver.failures.state import BOOTED, matching
from hostwright.standard.roles.driver.gpus import smi
from hostwright.standard.roles.driver.nvsmi.fields import LOST
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.driver.xids.recovery import Recovery, recovery_of_words

EXIT_POWER_CABLE = 8
EXIT_INTERRUPT = 10
EXIT_INFOROM = 14
EXIT_TIMEOUT = (124, 137)  #: exit statuses of timeout(1) if the program was terminated or killed
_ASKED = Pattern(r"recovery action (.{1,60})$")
RESET_REQUIRED = "NV_ERR_RESET_REQUIRED"
LAST_LINES = 3  #: number of last lines of nvidia-smi's output to search for a message
MANUAL = "nvidia-smi's manual, return values"


def ended(ctx: AuditContext, *statuses: int) -> Iterator[str]:
    """Yield nvidia-smi's exit status and last line if the exit status is in ``statuses``."""
    status, answer = smi_status(ctx), ctx.answer(NVIDIA_SMI)
    if status in statuses:
        last = [] if answer.ok else [line.strip() for line in answer.text.split("\n")[-LAST_LINES:] if line.strip()]
        yield f"nvidia-smi ended with status {status}" + (f": {last[-1]}" if last else "")


def _silent(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi does not end within its time limit (exit status 124 or 137 of timeout), and no card is lost."""
    try:
        lost = lost_gpus(ctx)
    except Unread:
        lost = {}
    if not lost:
        yield from ended(ctx, *EXIT_TIMEOUT)


def _power_cable(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi ends with status 8, or the kernel log has an Xid 54 since the module was loaded."""
    try:
        cables = sorted_xids(ctx).cables
    except Unread:
        cables = ()
    yield from ended(ctx, EXIT_POWER_CABLE)
    yield from (xid_line(ctx, event) for event in cables)


def _interrupt(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi ends with status 10."""
    yield from ended(ctx, EXIT_INTERRUPT)


def _inforom(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi ends with status 14, or prints, besides its report, a warning about a corrupted infoROM."""
    try:
        notices = smi(ctx).notices
    except Unread:
        notices = tuple(ctx.answer(NVIDIA_SMI).text.split("\n"))
    warnings = [line.strip() for line in notices if "inforom is corrupted" in line.lower()]
    yield from warnings or ended(ctx, EXIT_INFOROM)


def _needs_reset(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports that a card requires a reset or another recovery action, or that its memory cannot be read."""
    for gpu in smi(ctx).gpus:
        words = [word for word in (gpu.fault, gpu.recovery and f"recovery action {gpu.recovery}") if word]
        if words and gpu.fault != LOST:
            yield f"{card(gpu)}: {', '.join(words)}"


def _reset_logged(ctx: AuditContext) -> Iterator[str]:
    """The kernel log has NV_ERR_RESET_REQUIRED since the module was loaded, and neither nvidia-smi, an Xid nor a lost
    card identifies the card.
    """
    lines = matching(ctx, RESET_REQUIRED)[-1:]
    with suppress(Unread):
        if any(_needs_reset(ctx)):
            return
    if not lost_gpus(ctx) and not sorted_xids(ctx).standing:
        yield from lines


def _by_recovery(evidence: tuple[str, ...]) -> Iterator[Case]:
    """Yield a case for a power cycle if the recovery action of a card in ``evidence`` is a power cycle of the host."""
    asked = (match[1] for line in evidence if (match := _ASKED.search(line)))
    if any(recovery_of_words(words) is Recovery.SYSTEM for words in asked):
        yield Case("gpu-needs-reset", "a card requires a reboot of the whole system", POWER_CYCLE)


SMI = (
    FailureRule(
        "nvidia-smi-silent",
        r"nvidia-smi does not answer within",
        "nvidia-smi does not end: a card or its driver hangs, and so do programs that use it",
        "Drain the host and check for Xids and for processes in state D (ps -eo pid,stat,wchan:30,comm); reboot. If "
        "the reboot hangs too, cycle the power",
        "leptonai/gpud; NVIDIA's GPU debug guidelines",
        sign=Sign("gpu", _silent),
        treatment=Hardware("power cycle", "the failure's own fix: a reboot may hang as well, so cut the power"),
    ),
    FailureRule(
        "power-cable",
        NO_POWER,
        "a card's power cables are not connected properly",
        "Drain the host, switch it off, and check the card's power cables and the supply's rating",
        f"{MANUAL}: 8; NVIDIA's Xid catalog, Xid 54",
        sign=Sign("gpu", _power_cable),
        treatment=Hardware("hand over", "NVIDIA's Xid catalog: CHECK_MECHANICALS", tries=0),
    ),
    FailureRule(
        "gpu-interrupts",
        r"detected an interrupt issue with (?:a|the) GPU"
        r"|No interrupts of any type are available|Can't find an IRQ for your NVIDIA card",
        "the interrupts of a card do not reach the driver",
        "Drain the host and check /proc/interrupts and dmesg for the card's interrupt; reboot without pci=nomsi and "
        "noapic on the kernel's command line. If it persists, update the firmware",
        f"{MANUAL}: 10",
        sign=Sign("gpu", _interrupt),
        treatment=Hardware("power cycle", CYCLE, tries=1),
    ),
    FailureRule(
        "inforom-corrupted",
        r"[Ii]nfo[Rr][Oo][Mm] is corrupted",
        "the memory with a card's configuration and ECC counters (infoROM) is damaged",
        "Drain the host and cycle its power. If it persists, have the card replaced (its vendor can flash it)",
        f"{MANUAL}: 14",
        sign=Sign("gpu", _inforom),
        treatment=Hardware("power cycle", CYCLE, tries=1),
    ),
    FailureRule(
        "gpu-needs-reset",
        r"GPU requires (?:a )?reset"
        rf"|NVML_ERROR_RESET_REQUIRED|{RESET_REQUIRED}"
        r"|GPU Recovery Action {0,40}: (?:GPU )?Reset",
        "a card accepts no work until it is reset",
        "Drain the host and reset the card (nvidia-smi --gpu-reset -i N, with no program using it). If that does not "
        "help, or the recovery action requires it, reboot",
        "nvidia-smi's manual, GPU reset status and GPU recovery action; NVML_ERROR_RESET_REQUIRED",
        sign=Sign("gpu", _needs_reset),
        treatment=Hardware("power cycle", REBOOT, gently=True, cases=_by_recovery),
    ),
    FailureRule(
        "gpu-reset-logged",
        "",
        "a card must be reset before it accepts work, according to the kernel log, and nvidia-smi does not show "
        "which card",
        "Run a CUDA program on each card: on the affected one, CUDA reports busy or unavailable. Reset that card "
        "once no program uses it (nvidia-smi --gpu-reset -i N; all cards of a board with NVSwitches together), or "
        "drain the host and reboot. After a reset without a reboot the line stays in the log",
        "open-gpu-kernel-modules, nvstatuscodes.h; kubernetes-sigs/dra-driver-nvidia-gpu#982; scitix/sichek#51",
        sign=Sign("gpu", _reset_logged, (BOOTED,), grave=False),
    ),
)
