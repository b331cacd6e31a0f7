"""Rules for the Xids (NVIDIA's error reports) of the last seven days: Xids that fail a host, Xids already remedied, and
Xids that concern a program.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from hostwright.failures import AuditContext, Case, FailureRule, Hardware, Sign, Unread, Variant, once
from hostwright.roles import GpuEvent, Pattern
from hostwright.standard.roles.driver.failures.cards.lost import lost_gpus
from hostwright.standard.roles.driver.failures.cards.treatments import GPUD
from hostwright.standard.roles.driver.gpus import kernel_log, smi
from hostwright.standard.roles.driver.xids.catalog import CATALOG as ROWS
from hostwright.standard.roles.driver.xids.catalog import (
    MEMORY_RETIRED,
    OFF_THE_BUS,
    POWER_CABLE,
    RECOVERY_CHANGED,
    Action,
    Concern,
    meaning_of,
)
from hostwright.standard.roles.driver.xids.events import is_nonfatal, loaded_at, slot, xid_events
from hostwright.standard.roles.driver.xids.recovery import Recovery, recovery_of_xid

TEXT_CHARACTERS = 80  #: maximum number of characters of a log line that the evidence quotes
#: time after a fatal Xid within which a minor Xid of the same card counts as a consequence
ECHO = timedelta(minutes=10)
_XID_LINE = Pattern(r"Xid (\d{1,3})(?: \(154: ([A-Za-z0-9 ]{1,30})\))? on ")
CLEANED_UP = 45  #: number of the Xid for work that the driver removed after an earlier error
_FIRMWARE_STOPPED = Pattern(r"NVRM: [^\n]{0,80}(?:GSP RM heartbeat timed out|GSP-CrashCat Report)")


@dataclass(frozen=True, slots=True)
class SortedXids:
    """Xids of one audit by kind, without the Xids of lost cards (rule ``gpu-lost``)."""

    standing: tuple[GpuEvent, ...] = ()  #: fatal Xids without a later remedy, and minor Xids caused by these fatal Xids
    #: fatal Xids with a later remedy or without need of a remedy, and their minor consequences
    past: tuple[GpuEvent, ...] = ()
    program: tuple[GpuEvent, ...] = ()  #: Xids that concern only a program, not the card or the host
    cables: tuple[GpuEvent, ...] = ()


def sorted_xids(ctx: AuditContext) -> SortedXids:
    """Return the Xids in the kernel log, by kind. Raises ``Unread`` if the kernel log cannot be read.

    The driver's own recovery action (Xid 154) takes precedence over NVIDIA's Xid catalog, and the catalog over Azure's
    list.
    """
    lost, loaded, asked = lost_gpus(ctx), loaded_at(kernel_log(ctx)), recoveries(ctx)
    by_kind: dict[str, list[GpuEvent]] = {"standing": [], "past": [], "program": [], "cables": []}
    for event in xid_events(kernel_log(ctx)):
        xid, at = meaning_of(event.number), _time(event)
        if xid.concern is Concern.NOBODY or event.bus in lost:
            continue
        over = at and ((loaded and at < loaded) or _taken_back(asked.get(event.bus), at))
        ended = over and event.number == MEMORY_RETIRED
        if (xid.concern is Concern.PROGRAM and not ended) or is_nonfatal(event.number, event.text):
            by_kind["program"].append(event)
        elif over or event.number == OFF_THE_BUS:
            by_kind["past"].append(event)
        else:
            by_kind["cables" if event.number == POWER_CABLE else "standing"].append(event)
    by_kind["standing"] += _asked_alone(ctx, {event.bus for kind in ("standing", "cables") for event in by_kind[kind]})
    for source, into in (("past", "standing"), ("program", "standing"), ("program", "past")):
        _join(by_kind[source], by_kind[into])
    return SortedXids(**{name: tuple(events) for name, events in by_kind.items()})


@once
def recoveries(ctx: AuditContext) -> dict[str, tuple[Recovery, datetime]]:
    """Return PCI slot → the driver's last recovery action since the load of the module, and the time of this action.

    Raises ``Unread`` if the kernel log cannot be read.
    """
    loaded = loaded_at(kernel_log(ctx))
    found = ((event.bus, recovery_of_xid(event.text), _time(event)) for event in _changes_of_recovery(ctx))
    return {bus: (action, at) for bus, action, at in found if action and at and not (loaded and at < loaded)}


def _taken_back(asked: tuple[Recovery, datetime] | None, at: datetime) -> bool:
    return asked is not None and asked[0] is Recovery.NONE and at <= asked[1]


def _changes_of_recovery(ctx: AuditContext) -> Iterator[GpuEvent]:
    return (event for event in xid_events(kernel_log(ctx)) if event.number == RECOVERY_CHANGED)


def _asked_alone(ctx: AuditContext, explained: Container[str]) -> Iterator[GpuEvent]:
    asked, lost = recoveries(ctx), lost_gpus(ctx)
    for event in _changes_of_recovery(ctx):
        waits = event.bus in asked and asked[event.bus][0] is not Recovery.NONE
        if waits and event.bus not in explained and event.bus not in lost:
            yield event


def _join(source: list[GpuEvent], into: list[GpuEvent]) -> None:
    fatal = tuple(into)
    for event in tuple(source):
        noted = event.number == CLEANED_UP or meaning_of(event.number).action is Action.IGNORE
        if noted and any(other.bus == event.bus and _near(other, event) for other in fatal):
            source.remove(event)
            into.append(event)


def _near(event: GpuEvent, other: GpuEvent) -> bool:
    at, other_at = _time(event), _time(other)
    return bool(at and other_at and abs(at - other_at) <= ECHO)


def xid_line(ctx: AuditContext, event: GpuEvent) -> str:
    """Return ``event`` as a line of evidence: number, card, count, last time, meaning, NVIDIA's action, and log
    text.
    """
    xid = meaning_of(event.number)
    often = "once" if event.count == 1 else f"{event.count} times"
    when = f", last at {event.at}" if event.at else ""
    action = recoveries(ctx).get(event.bus, (Recovery.NONE, None))[0]
    asked = "" if action is Recovery.NONE else f" (154: {action.value})"
    return (
        f"Xid {event.number}{asked} on {_card(ctx, event.bus)}, {often}{when}: {xid.meaning}; "
        f"{xid.action.name}: {xid.action.value}; {event.text[:TEXT_CHARACTERS]}"
    )


def _standing(ctx: AuditContext) -> Iterator[str]:
    """Since the last load of the module, the kernel log has an Xid that NVIDIA's catalog or Azure's node checks call
    fatal. Xids for which NVIDIA only recommends a restart of the program do not count.
    """
    standing = sorted_xids(ctx).standing
    yield from (xid_line(ctx, event) for event in standing)
    yield from _of_firmware(ctx, standing)


def _of_firmware(ctx: AuditContext, events: tuple[GpuEvent, ...]) -> list[str]:
    times = [at for at in map(_time, events) if at]
    lines = [line for line in kernel_log(ctx) if _FIRMWARE_STOPPED.search(line.text)]
    return [line.text for line in lines if line.at and any(abs(at - line.at) <= ECHO for at in times)][-1:]


def _past(ctx: AuditContext) -> Iterator[str]:
    """In the last seven days, the kernel log has a fatal Xid, but since then the module was loaded again or the card
    has recovered.
    """
    for event in sorted_xids(ctx).past:
        yield xid_line(ctx, event)


def _program(ctx: AuditContext) -> Iterator[str]:
    """In the last seven days, the kernel log has an Xid that concerns only a program. Test messages, comments on
    another Xid, and minor Xids within ten minutes of a fatal Xid do not count.
    """
    for event in sorted_xids(ctx).program:
        if event.number != MEMORY_RETIRED:
            yield xid_line(ctx, event)


def _memory_retired(ctx: AuditContext) -> Iterator[str]:
    """Since the last load of the module, the kernel log has an Xid 63 without a fatal Xid within ten minutes."""
    for event in sorted_xids(ctx).program:
        if event.number == MEMORY_RETIRED:
            yield xid_line(ctx, event)


def _card(ctx: AuditContext, bus: str) -> str:
    try:
        indexes = [gpu.index for gpu in smi(ctx).gpus if slot(gpu.bus) == bus]
    except Unread:
        indexes = []
    return f"card {indexes[0]} ({bus})" if indexes else bus


def _time(event: GpuEvent) -> datetime | None:
    return datetime.fromisoformat(event.at) if event.at else None


def by_number(evidence: tuple[str, ...]) -> Iterator[Case]:
    """Yield a case for each Xid in ``evidence`` of the rule ``xid-fatal``, with the treatment in a rebuild of the host.

    A recovery action of the driver selects between a reboot and a power cycle. A hardware inspection in NVIDIA's
    catalog takes precedence.
    """
    numbers: dict[int, str] = {}
    for match in filter(None, map(_XID_LINE.match, evidence)):
        numbers[int(match[1])] = match[2] or numbers.get(int(match[1]), "")
    for number, asked in numbers.items():
        xid = meaning_of(number)
        treatment = TREATMENTS.get(xid.action, OTHERWISE)
        if asked and treatment.way != "hand over":
            treatment = POWER_CYCLE if asked == Recovery.SYSTEM.value else ASKED
        if number in REPLACE_TOGETHER and set(numbers) >= REPLACE_TOGETHER:
            treatment = TOGETHER
        yield Case(f"xid-{number}", f"Xid {number}: {xid.meaning}", treatment)


#: NVIDIA's action for an Xid → treatment in a rebuild; default: a reboot
TREATMENTS: Mapping[Action, Hardware] = {
    Action.RESTART_BM: Hardware("power cycle", f"NVIDIA's Xid catalog: RESTART_BM; {GPUD}"),
    Action.CHECK_MECHANICALS: Hardware("hand over", "NVIDIA's Xid catalog: CHECK_MECHANICALS", tries=0),
}
OTHERWISE = Hardware("power cycle", f"NVIDIA's Xid catalog: reset the GPU; {GPUD}", gently=True)
_ACTIONS = "nvmlDeviceGpuRecoveryAction_t: the driver's own recovery action"
#: treatment if the driver reports a recovery action that a reboot performs
ASKED = Hardware("power cycle", f"{_ACTIONS}, Xid 154; {GPUD}", gently=True)
POWER_CYCLE = Hardware("power cycle", f"{_ACTIONS}, SYSTEM_REBOOT")
#: Xids that together mean a defective card: uncorrected ECC error and failed row remapping
REPLACE_TOGETHER = frozenset((48, 64))
TOGETHER = Hardware("hand over", "NVIDIA's Xid catalog: WORKFLOW_XID_48, with 64 the card is replaced", tries=0)


def _message(numbers: str) -> str:
    return rf"NVRM: Xid \([^()\n]{{3,40}}(?: \([^()\n]*\))?\): {numbers}\b"


def _numbers(concern: Concern, but: Action) -> str:
    rows = (number for number in sorted(ROWS) if ROWS[number].concern is concern and ROWS[number].action is not but)
    return f"(?:{'|'.join(map(str, rows))})"


def _by_meaning(concern: Concern, further: Mapping[Action, str]) -> Iterator[Variant]:
    numbers: dict[tuple[str, Action], list[str]] = {}
    for number, xid in sorted(ROWS.items()):
        if xid.concern is concern:
            numbers.setdefault((xid.meaning, xid.action), []).append(str(number))
    for (meaning, action), some in numbers.items():
        range_of = " to ".join(dict.fromkeys((some[0], some[-1])))
        cause = f"{{the GPU CARD|a GPU}} reported Xid {{NUMBER|{range_of}}}: {meaning}"
        numbers_of = f"(?:{'|'.join(some)})"
        yield Variant(
            rf"{_message(numbers_of)}|caused by previous Xid {numbers_of}\b",
            cause,
            action.value[0].upper() + action.value[1:] + further.get(action, ""),
        )


_NO_REPAIR = (
    ". The host needs no repair; if several programs get it on the same card, drain the host and run dcgmi diag -r 3 "
    "on the card"
)
_OF_PROGRAMS = {
    Action.IGNORE: _NO_REPAIR,
    Action.RESTART_APP: f"{_NO_REPAIR} (compute-sanitizer finds a program's accesses out of bounds)",
    Action.UNSTATED: ": if work on the card fails, drain the host and reset the card; contact the vendor if it recurs",
}
_NAMES = (
    r"caused by previous Xid (?P<number>[0-9]{1,3})",
    r"NVRM: Xid \((?:PCI:)?(?P<card>[0-9a-fA-F:.]{7,20})[^)\n]{0,40}\): (?P<number>[0-9]{1,3})\b",
)
CATALOG = "NVIDIA's Xid catalog; Azure/azurehpc-health-checks azure_gpu_xid.nhc"

#: pattern of the numbers of fatal Xids, except Xids caused by a bug in a program
_FATAL = _numbers(Concern.NODE, but=Action.RESTART_APP)
_NOBODYS = _numbers(Concern.NOBODY, but=Action.RESTART_APP)

XIDS = (
    FailureRule(
        "xid-fatal",
        _message(_FATAL) + rf"|NVRM: Xid [^\n]+caused by previous Xid {_FATAL}\b"
        r"|NVRM: Xid [^\n]+\): 137, RLW_"
        r"|uncorrectable NVLink error (?:was )?(?:encountered|detected)"
        r"|rpcRecvPoll timed ?out|RPC (?:event )?history \(CPU (?:->|<-) GSP\)"
        r"|waiting for RPC (?:response )?from (?:GPU[0-9]{1,2} )?GSP"
        r"|NVRM: [^\n]*(?:heartbeat timed out|GSP-CrashCat Report|RC watchdog: GPU is probably locked"
        r"|uvm encountered global fatal error)",
        "a GPU reported an error (Xid) and must get no work until it is repaired",
        "Drain the host and follow NVIDIA's advice, which is printed after each Xid. A reboot, or loading the module "
        "again, ends this report. If a card reports the same again, have it replaced. Exception: 119 and 120 come "
        "from the firmware (GSP) in the driver; if these recur, first name another driver release in the stack",
        CATALOG,
        beside=r"NVRM: [^\n]*(?:heartbeat timed out|GSP-CrashCat|GSP Timeout|Xid [^\n]+\): 1(?:19|20)\b)",
        variants=(
            # This variant is only for texts, because evidence from a host already has the meaning of each Xid.
            Variant(
                r"NVRM: (?:Xid [^\n]+\): 1(?:19|20)\b|[^\n]*(?:heartbeat timed out|GSP-CrashCat|GSP Timeout"
                r"|rpcRecvPoll|\bGSP\) *$"
                r"|GSP!))",
                "a GPU's system processor (GSP) stopped answering or crashed (Xid 119, 120): its firmware, which is "
                "part of the driver, or the card is defective, not a program. Other Xids of that time (8, 109, 154) "
                "follow from that",
                "Save the output of nvidia-bug-report.sh, then drain the host and reset the card (nvidia-smi "
                "--gpu-reset -i N), or reboot. If it recurs, name another driver release in the stack, which has "
                "other firmware (before Blackwell, the proprietary module works without it: "
                "NVreg_EnableGpuFirmware=0). If it follows the card, have the card checked",
            ),
            *_by_meaning(Concern.NODE, {}),
        ),
        unless=r"\bNonfatal\b",  # the link still works after a nonfatal NVLink 5 error
        names=_NAMES,
        sign=Sign("gpu", _standing),
        treatment=Hardware("power cycle", f"NVIDIA's Xid catalog; {GPUD}", gently=True, cases=by_number),
    ),
    FailureRule(
        "xid-past",
        "",
        "in the last days a GPU reported an error (Xid) after which a host must not be used; it was remedied since "
        "(the driver was loaded again, or the card recovered)",
        "Monitor the card; if the same Xid recurs after a reboot, drain the host and have the card replaced",
        "leptonai/gpud, components/accelerator/nvidia/xid: hardware inspection when it recurs after reboots",
        sign=Sign("gpu", _past, grave=False),
    ),
    FailureRule(
        "xid-memory-retired",
        _message(str(MEMORY_RETIRED)),
        "a GPU retired a page of its memory, or replaces a row of it, after an ECC error. This takes effect at the "
        "next reset or reboot; the card is healthy afterwards",
        "Reset the card when no program uses it (nvidia-smi --gpu-reset -i N), or reboot, at the next opportunity. "
        "Have it replaced only if Xid 64 comes with it or it recurs after that",
        "NVIDIA's Xid catalog; NVIDIA dynamic page retirement and GPU memory error management",
        unless=_message(_FATAL),
        sign=Sign("gpu", _memory_retired, grave=False),
    ),
    FailureRule(
        "xid-application",
        _message("[0-9]{1,3}"),
        "a GPU reported an error (Xid) that ended a program's work or is informational; the host itself needs no "
        "repair",
        "Follow the advice printed after each Xid. If a program was ended, check the program (compute-sanitizer "
        "finds accesses out of bounds). If several programs get it on the same card, run dcgmi diag -r 3 on the card",
        CATALOG,
        names=_NAMES,
        variants=(*_by_meaning(Concern.PROGRAM, _OF_PROGRAMS),),
        unless=f"{_message(_FATAL)}|{_message(_NOBODYS)}",
        # These messages are about a fault of the card's slot.
        narrower=r"can't recover \(no error_detected callback\)|AER: device recovery failed",
        sign=Sign("gpu", _program, grave=False),
    ),
)
