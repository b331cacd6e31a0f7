"""Xids of the last days: those that fail a host, those already remedied, and those that concern a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from hostwright.failures import AuditContext, Case, FailureRule, Hardware, Sign, Unread
from hostwright.roles import GpuEvent, Pattern
from hostwright.standard.roles.driver.failures.cards.lost import lost_gpus
from hostwright.standard.roles.driver.failures.cards.thresholds import RECENT
from hostwright.standard.roles.driver.failures.cards.treatments import GPUD
from hostwright.standard.roles.driver.gpus import kernel_log, smi
from hostwright.standard.roles.driver.xids.catalog import CATALOG as ROWS
from hostwright.standard.roles.driver.xids.catalog import OFF_THE_BUS, POWER_CABLE, Action, Concern, meaning_of
from hostwright.standard.roles.driver.xids.events import loaded_at, slot, xid_events

TEXT_CHARACTERS = 80  #: of the line itself in the evidence
ECHO = timedelta(minutes=10)  #: a minor Xid of a card this soon after a fatal one belongs to it
_XID_LINE = Pattern(r"Xid (\d{1,3}) on ")  #: how the text of ``xid_line`` begins; the host's own text follows
CLEANED_UP = 45  #: work was removed because of a preceding error


@dataclass(frozen=True, slots=True)
class SortedXids:
    """The Xids of one audit. ``cables`` have a rule of their own; those of a lost card are left to ``gpu-lost``."""

    standing: tuple[GpuEvent, ...] = ()  #: fatal, without a sign of a remedy since; and their echoes
    past: tuple[GpuEvent, ...] = ()  #: fatal, but remedied since or in no need of it; and their echoes
    program: tuple[GpuEvent, ...] = ()  #: concern a program
    cables: tuple[GpuEvent, ...] = ()


def sorted_xids(ctx: AuditContext) -> SortedXids:
    """The Xids in the kernel log. Raises ``Unread`` if there is no log.

    Azure also fails a node for some Xids that, according to NVIDIA, need no action or only a restart of the program:
    these count for as long as Azure looks back.
    """
    lost, loaded = lost_gpus(ctx), loaded_at(kernel_log(ctx))
    by_kind: dict[str, list[GpuEvent]] = {"standing": [], "past": [], "program": [], "cables": []}
    for event in xid_events(kernel_log(ctx)):
        xid, at = meaning_of(event.number), _time(event)
        mild = xid.action in {Action.IGNORE, Action.RESTART_APP}
        if xid.concern is Concern.NOBODY or event.bus in lost:
            continue
        if xid.concern is Concern.PROGRAM:
            by_kind["program"].append(event)
        elif (at and loaded and at < loaded) or event.number == OFF_THE_BUS or (mild and _old(at, ctx.now)):
            by_kind["past"].append(event)
        else:
            by_kind["cables" if event.number == POWER_CABLE else "standing"].append(event)
    for source, into in (("past", "standing"), ("program", "standing"), ("program", "past")):
        _join(by_kind[source], by_kind[into])
    return SortedXids(**{name: tuple(events) for name, events in by_kind.items()})


def _join(source: list[GpuEvent], into: list[GpuEvent]) -> None:
    """Move events that only follow from an event in ``into`` beside it, so that one cause is one finding."""
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
    """An Xid as evidence: card, number, how often and when, its meaning, NVIDIA's action, the line's own words."""
    xid = meaning_of(event.number)
    often = "once" if event.count == 1 else f"{event.count} times"
    when = f", last at {event.at}" if event.at else ""
    return (
        f"Xid {event.number} on {_card(ctx, event.bus)}, {often}{when}: {xid.meaning}; "
        f"{xid.action.name}: {xid.action.value}; {event.text[:TEXT_CHARACTERS]}"
    )


def _standing(ctx: AuditContext) -> Iterator[str]:
    """The kernel log has, since the module was loaded, an Xid on which Azure's node checks fail a node (those that ask
    for nothing but a program's restart: in the last two hours), or for which NVIDIA's catalog wants more than that.
    """
    for event in sorted_xids(ctx).standing:
        yield xid_line(ctx, event)


def _past(ctx: AuditContext) -> Iterator[str]:
    """The kernel log of the last seven days has such an Xid from before the module was last loaded, from which the card
    came back, or that asks for no more than a program's restart and is older than two hours.
    """
    for event in sorted_xids(ctx).past:
        yield xid_line(ctx, event)


def _program(ctx: AuditContext) -> Iterator[str]:
    """The kernel log of the last seven days has any other Xid, but for test messages, comments on another, and what
    follows a fatal one within ten minutes and is only noted.
    """
    for event in sorted_xids(ctx).program:
        yield xid_line(ctx, event)


def _card(ctx: AuditContext, bus: str) -> str:
    try:
        indexes = [gpu.index for gpu in smi(ctx).gpus if slot(gpu.bus) == bus]
    except Unread:
        indexes = []
    return f"card {indexes[0]} ({bus})" if indexes else bus


def _time(event: GpuEvent) -> datetime | None:
    return datetime.fromisoformat(event.at) if event.at else None


def _old(at: datetime | None, now: datetime) -> bool:
    return at is not None and now - at > RECENT


def by_number(evidence: tuple[str, ...]) -> Iterator[Case]:
    """The Xids in the evidence of ``xid-fatal``, each once, with what a rebuild does about it."""
    numbers = list(dict.fromkeys(int(match[1]) for line in evidence if (match := _XID_LINE.match(line))))
    for number in numbers:
        xid = meaning_of(number)
        treatment = TREATMENTS.get(xid.action, OTHERWISE)
        if number in REPLACE_TOGETHER and set(numbers) >= REPLACE_TOGETHER:
            treatment = TOGETHER
        yield Case(f"xid-{number}", f"Xid {number}: {xid.meaning}", treatment)


#: the action in NVIDIA's catalog for an Xid → what a rebuild does about it; any other action that is still due on a
#: host to be rebuilt is answered by a reboot, which ends the report
TREATMENTS: Mapping[Action, Hardware] = {
    Action.RESTART_BM: Hardware("power cycle", f"NVIDIA's Xid catalog: RESTART_BM; {GPUD}"),
    Action.CHECK_MECHANICALS: Hardware("hand over", "NVIDIA's Xid catalog: CHECK_MECHANICALS", tries=0),
}
OTHERWISE = Hardware("power cycle", f"NVIDIA's Xid catalog: reset the GPU; {GPUD}", gently=True)
#: Xids that together mean a broken card: an error that ECC did not correct, and no spare row for it
REPLACE_TOGETHER = frozenset((48, 64))
TOGETHER = Hardware("hand over", "NVIDIA's Xid catalog: WORKFLOW_XID_48, with 64 the card is replaced", tries=0)


def _message(numbers: str) -> str:
    """The pattern of an Xid's line in the kernel's log."""
    return rf"NVRM: Xid \([^()\n]{{3,40}}(?: \([^()\n]*\))?\): {numbers}\b"


def _numbers(concern: Concern, but: Action) -> str:
    """The pattern of the Xids that concern these, but for those that this action answers."""
    rows = (number for number in sorted(ROWS) if ROWS[number].concern is concern and ROWS[number].action is not but)
    return f"(?:{'|'.join(map(str, rows))})"


CATALOG = "NVIDIA's Xid catalog; Azure/azurehpc-health-checks azure_gpu_xid.nhc"

#: in a text, without those that NVIDIA answers by starting the program again: they follow from a fault of its own
_FATAL = _numbers(Concern.NODE, but=Action.RESTART_APP)
_NOBODYS = _numbers(Concern.NOBODY, but=Action.RESTART_APP)

XIDS = (
    FailureRule(
        "xid-fatal",
        _message(_FATAL) + rf"|NVRM: Xid [^\n]+caused by previous Xid {_FATAL}\b"
        r"|uncorrectable NVLink error (?:was )?(?:encountered|detected)"
        r"|RPC (?:event )?history \(CPU (?:->|<-) GSP\)|waiting for RPC (?:response )?from (?:GPU[0-9]{1,2} )?GSP",
        "a GPU reported an error (Xid) after which it should get no work until it is repaired",
        "Drain the host and do what stands beside each Xid, which is NVIDIA's own advice; a reboot, or loading the"
        " module again, ends this report, and a card that reports the same again is to be replaced",
        CATALOG,
        sign=Sign("gpu", _standing),
        treatment=Hardware("power cycle", f"NVIDIA's Xid catalog; {GPUD}", gently=True, cases=by_number),
    ),
    FailureRule(
        "xid-past",
        "",
        "in the last days a GPU reported an error (Xid) after which a host should not be used; it has been dealt with"
        " since (the driver was loaded again, or the card came back), or nothing need be done",
        "Watch the card; if the same Xid recurs after a reboot, drain the host and have the card replaced",
        "leptonai/gpud, components/accelerator/nvidia/xid: hardware inspection when it recurs after reboots",
        sign=Sign("gpu", _past, grave=False),
    ),
    FailureRule(
        "xid-application",
        _message("[0-9]{1,3}"),
        "a GPU reported an error (Xid) that ended a program's work or is only noted, and for which the host itself"
        " needs no repair",
        "Look at the program that ran then (compute-sanitizer finds accesses out of bounds); when several programs"
        " meet it on the same card, run dcgmi diag -r 3 on it",
        CATALOG,
        unless=f"{_message(_FATAL)}|{_message(_NOBODYS)}",
        sign=Sign("gpu", _program, grave=False),
    ),
)
