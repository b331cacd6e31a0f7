"""The rules that choose the way of a rebuild, as a table: the first that has a reason decides. Pure.

First come those about whether the host can be reached, then its hardware, then its disk, then its layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from hostwright.audit.failures import ForPeople, Held, NoRoom, Stuck, Tangled
from hostwright.audit.fleetaudit import Finding
from hostwright.rebuild.rebuild import Way
from hostwright.rebuild.ways.diagnosis import Diagnosis
from hostwright.rebuild.ways.hardware import broken

Kind = TypeVar("Kind", ForPeople, Held, NoRoom, Stuck, Tangled)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rule applies. ``text`` is a sentence without its full stop, and may hold text of the host.

    ``key`` is the name of the failure behind it, where there is one: it stands in the record of the rebuild.
    """

    text: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: ``why`` gives its reasons; none: it does not apply. ``source`` is where it comes from.

    ``refuses``: nothing can be done from here, and the reasons say why. ``gently``: a reboot is enough. ``cleans``:
    Hostwright's old files are deleted from the disk first.
    """

    name: str
    way: Way
    source: str
    why: Callable[[Diagnosis], Iterable[Reason]]
    refuses: bool = False
    gently: bool = False
    cleans: bool = False


def people(found: Diagnosis) -> Iterator[Reason]:
    """Failures about which people must decide; each says what."""
    for one, _ in _treated(found, ForPeople):
        if one.grave:
            yield Reason(f"{one.cause}: {one.cure}", one.rule)


def _key_changed(found: Diagnosis) -> Iterator[Reason]:
    if found.reach == "key changed" and "trust" not in found.tried:
        yield Reason(found.sentence or "it presents a different host key from the known one")


def _off(found: Diagnosis) -> Iterator[Reason]:
    if found.reach == "silent" and found.off and "power on" not in found.tried:
        yield Reason(_silent(found))
        yield Reason("its BMC reports that it is off")


def _stays_off(found: Diagnosis) -> Iterator[Reason]:
    if found.reach == "silent" and found.off:
        yield Reason("it was powered on, but its BMC reports that it is off again: check its power and its BMC")


def _no_bmc_answer(found: Diagnosis) -> Iterator[Reason]:
    if found.reach == "silent" and found.power == "unknown":
        said = found.power_sentence or "it does not report whether the power is on"
        yield Reason(f"its BMC cannot help: {said}; and {_silent(found)}")  # a lock holds the beginning only


def _silent_and_on(found: Diagnosis) -> Iterator[Reason]:
    if found.reach == "silent" and found.usable_bmc and "power cycle" not in found.tried:
        yield Reason(_silent(found))
        yield Reason("its BMC reports that it is on")


def _still_silent(found: Diagnosis) -> Iterator[Reason]:
    if found.reach == "silent" and found.usable_bmc and found.can_reinstall and "reinstall" not in found.tried:
        yield Reason(f"{_silent(found)}, even after a power cycle")


def _silent_for_good(found: Diagnosis) -> Iterator[Reason]:
    if found.reach != "silent":
        return
    if not found.has_bmc:
        hint = ", or reinstall it with --from reinstall" if found.can_reinstall == "command" else ""
        yield Reason(f"{_silent(found)}, and the inventory names no BMC for it: check its console{hint}")
    else:
        done = " and ".join(dict.fromkeys(found.tried)) or "nothing"
        yield Reason(f"{_silent(found)}; tried without success: {done}; check its console")


def _not_let_in(found: Diagnosis) -> Iterator[Reason]:
    if found.reach != "answers":
        yield Reason(found.sentence or f"it cannot be diagnosed: {found.reach}")


def _unread(found: Diagnosis) -> Iterator[Reason]:
    if found.read is None:
        said = found.sentence or (found.audit.sentence if found.audit else "")
        yield Reason(f"it answers but cannot be diagnosed: {said or 'no reason is known'}")


def _hardware(found: Diagnosis) -> Iterator[Reason]:
    for one in broken(found):
        if one.spent:
            again = f", again after {one.times} power cycles or reboots" if one.times and one.cure.tries else ""
            yield Reason(one.text + again, one.key)


def _power_cycle(found: Diagnosis) -> Iterator[Reason]:
    """Not gently: one failure among them needs the power to be cut."""
    seen = broken(found)
    if any(not one.cure.gently for one in seen):
        yield from (Reason(one.text, one.key) for one in seen)


def _reboot(found: Diagnosis) -> Iterator[Reason]:
    yield from (Reason(one.text, one.key) for one in broken(found))
    if "power cycle" not in found.tried:
        yield from (Reason(treatment.reason, one.rule) for one, treatment in _treated(found, Held))


def _misfit(found: Diagnosis) -> Iterator[Reason]:
    yield from (Reason(sentence) for sentence in dict.fromkeys(found.refusals))


def _full(found: Diagnosis) -> Iterator[Reason]:
    if "repair" in found.tried:
        return
    yield from map(Reason, found.no_room)
    for one, treatment in _treated(found, NoRoom):
        if found.differs or not treatment.nearly:
            yield Reason(one.cause, one.rule)


def _still_full(found: Diagnosis) -> Iterator[Reason]:
    yield from map(Reason, found.no_room)
    full = (one for one, treatment in _treated(found, NoRoom) if not treatment.nearly)
    yield from (Reason(f"{one.cause}: {one.cure}", one.rule) for one in full)


def _for_people(found: Diagnosis) -> Iterator[Reason]:
    if not found.differs or "repair" in found.tried:
        yield from people(found)


def _tangled(found: Diagnosis) -> Iterator[Reason]:
    if "relayer" not in found.tried:
        for one, treatment in _treated(found, Tangled):
            if one.grave or found.differs:
                yield Reason(treatment.reason, one.rule)


def _failed_before(found: Diagnosis) -> Iterator[Reason]:
    last = max(found.history, key=lambda one: one.at, default=None)
    if last is None or last.outcome != "failed" or "relayer" in found.tried or not found.differs:
        return
    if "repair" in last.ways and "relayer" not in last.ways:
        yield Reason(f"the rebuild of {last.at:%Y-%m-%d %H:%M} (run {last.run}) repaired it, and failed")


def _stuck(found: Diagnosis) -> Iterator[Reason]:
    """What differs is repaired first: these may go away with it."""
    if "relayer" not in found.tried and (not found.differs or "repair" in found.tried):
        yield from (Reason(treatment.reason, one.rule) for one, treatment in _treated(found, Stuck) if one.grave)


def _repaired_in_vain(found: Diagnosis) -> Iterator[Reason]:
    if "repair" in found.tried and "relayer" not in found.tried:
        yield from (Reason(f"it was repaired, but still: {one.text}", one.key) for one in _wrong(found))


def _differs(found: Diagnosis) -> Iterator[Reason]:
    if "repair" not in found.tried and "relayer" not in found.tried:
        yield from _wrong(found)


def _in_vain(found: Diagnosis) -> Iterator[Reason]:
    for one in _wrong(found):
        yield Reason(f"after {' and '.join(found.tried)} it is still not as desired: {one.text}", one.key)


def _not_verified(found: Diagnosis) -> Iterator[Reason]:
    """Removing its layers would not help where the scheduler is what fails."""
    if "nothing" in found.tried:
        yield Reason("nothing differs, but its checks fail or it cannot return to service: see what failed")


def _as_desired(found: Diagnosis) -> Iterator[Reason]:  # noqa: ARG001 - a rule like the others
    yield Reason("it is as desired")


def _wrong(found: Diagnosis) -> Iterator[Reason]:
    """What is not as desired, layer by layer, and grave failures beside that."""
    layers = {role.role: len(role.changes) for role in found.plan.roles if role.changes} if found.plan else {}
    if not layers and found.audit:
        names = [one.layer for one in found.audit.deviations]
        layers = {name: names.count(name) for name in dict.fromkeys(names)}
    if layers:
        told = ", ".join(f"{name} ({number})" for name, number in layers.items())
        yield Reason(f"these layers differ from the stack: {told}")
    yield from (Reason(one.cause, one.rule) for one in found.findings if one.grave)


def _treated(found: Diagnosis, kind: type[Kind]) -> Iterator[tuple[Finding, Kind]]:
    """The failures that were recognised and ask for this kind of treatment, each with what it says of it."""
    for one in found.findings:
        treatment = found.treatments.get(one.rule)
        if isinstance(treatment, kind):
            yield one, treatment


def _silent(found: Diagnosis) -> str:
    return f"it does not answer ({found.sentence})" if found.sentence else "it does not answer"


ISSUE, SAFE = "the purpose of a rebuild: the least invasive way that can work", "nothing is done to an unseen host"

RULES: tuple[Rule, ...] = (
    Rule("key-changed", "trust", "a host's identity changes on purpose only", _key_changed),
    Rule("off", "power on", ISSUE, _off),
    Rule("stays-off", "hand over", SAFE, _stays_off, refuses=True),
    Rule("bmc-unknown", "hand over", SAFE, _no_bmc_answer, refuses=True),
    Rule("silent", "power cycle", ISSUE, _silent_and_on),
    Rule("still-silent", "reinstall", ISSUE, _still_silent),
    Rule("silent-for-good", "hand over", SAFE, _silent_for_good, refuses=True),
    Rule("not-let-in", "nothing", SAFE, _not_let_in, refuses=True),
    Rule("unread", "nothing", SAFE, _unread, refuses=True),
    Rule("hardware", "hand over", "the treatment of each failure names its source", _hardware),
    Rule("power-cycle", "power cycle", "the treatment of each failure names its source", _power_cycle),
    Rule("reboot", "power cycle", "the treatment of each failure names its source", _reboot, gently=True),
    Rule("misfit", "nothing", "rules.py: what fits together; a driver that does not build is worse than none", _misfit,
         refuses=True),
    Rule("full", "repair", "resources.room: what installers and repositories take", _full, cleans=True),
    Rule("still-full", "hand over", SAFE, _still_full, refuses=True),
    Rule("tangled", "relayer", "the treatments of the failures: Tangled", _tangled),
    Rule("failed-before", "relayer", "a repair that failed is not tried again", _failed_before),
    Rule("people", "hand over", "the failures' own fixes", _for_people, refuses=True),
    Rule("stuck", "relayer", "the treatments of the failures: Stuck", _stuck),
    Rule("repaired-in-vain", "relayer", "the next least invasive way", _repaired_in_vain),
    Rule("differs", "repair", ISSUE, _differs),
    Rule("in-vain", "hand over", SAFE, _in_vain, refuses=True),
    Rule("not-verified", "hand over", SAFE, _not_verified, refuses=True),
    Rule("as-desired", "nothing", ISSUE, _as_desired),
)  # fmt: skip
