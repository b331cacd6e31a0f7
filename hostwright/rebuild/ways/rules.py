"""Table of the rules that choose the method to rebuild a host: the first rule with a reason decides. Pure functions.

The rules are ordered by subject: reachability of the host, hardware, disk space, layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from hostwright.audit.failures import ForPeople, Held, NoRoom, Stuck, Tangled
from hostwright.common.errors import Finding
from hostwright.rebuild.rebuild import Way
from hostwright.rebuild.ways.diagnosis import Diagnosis
from hostwright.rebuild.ways.hardware import broken

Kind = TypeVar("Kind", ForPeople, Held, NoRoom, Stuck, Tangled)


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why a rule applies. ``text`` is a sentence without a full stop, and may contain text from the host.

    ``key`` is the name of the known failure behind the reason, if any.
    """

    text: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that chooses the method ``way`` if ``why`` yields reasons. ``source`` is the justification of the rule.

    With ``refuses``, Hostwright can do nothing for the host. With ``gently``, the power cycle may be a reboot. With
    ``cleans``, Hostwright's old files are first deleted from the host, to free disk space.
    """

    name: str
    way: Way
    source: str
    why: Callable[[Diagnosis], Iterable[Reason]]
    refuses: bool = False
    gently: bool = False
    cleans: bool = False


def people(diagnosis: Diagnosis) -> Iterator[Reason]:
    """Yield reasons to hand the host over to the operator: failures that require the operator's decision."""
    for finding, _ in _treated(diagnosis, ForPeople):
        if finding.grave:
            yield Reason(f"{finding.cause}: {finding.cure}", finding.rule)


def _key_changed(diagnosis: Diagnosis) -> Iterator[Reason]:
    if diagnosis.reach == "key changed" and "trust" not in diagnosis.tried:
        yield Reason(diagnosis.sentence or "the host presents another host key than the recorded one")


def _off(diagnosis: Diagnosis) -> Iterator[Reason]:
    if diagnosis.reach == "silent" and diagnosis.off and "power on" not in diagnosis.tried:
        yield Reason(_silent(diagnosis))
        yield Reason("the BMC reports that the host is off")


def _stays_off(diagnosis: Diagnosis) -> Iterator[Reason]:
    if diagnosis.reach == "silent" and diagnosis.off:
        yield Reason(
            "the host was powered on, but its BMC reports that the host is off again; check the power supply "
            "and the BMC"
        )


def _no_bmc_answer(diagnosis: Diagnosis) -> Iterator[Reason]:
    if diagnosis.reach == "silent" and diagnosis.power == "unknown":
        sentence = diagnosis.power_sentence or "it does not report whether the power is on"
        # The sentence names the BMC first, because a lock stores only the start of the reason.
        yield Reason(f"the BMC cannot be used: {sentence}; and {_silent(diagnosis)}")


def _silent_and_on(diagnosis: Diagnosis) -> Iterator[Reason]:
    if diagnosis.reach == "silent" and diagnosis.usable_bmc and "power cycle" not in diagnosis.tried:
        yield Reason(_silent(diagnosis))
        yield Reason("the BMC reports that the host is on")


def _still_silent(diagnosis: Diagnosis) -> Iterator[Reason]:
    if (
        diagnosis.reach == "silent"
        and diagnosis.usable_bmc
        and diagnosis.can_reinstall
        and "reinstall" not in diagnosis.tried
    ):
        yield Reason(f"{_silent(diagnosis)}, even after a power cycle")


def _silent_for_good(diagnosis: Diagnosis) -> Iterator[Reason]:
    if diagnosis.reach != "silent":
        return
    if not diagnosis.has_bmc:
        hint = ", or reinstall it with --from reinstall" if diagnosis.can_reinstall == "command" else ""
        yield Reason(f"{_silent(diagnosis)}, and the inventory names no BMC for it: check its console{hint}")
    else:
        done = " and ".join(dict.fromkeys(diagnosis.tried)) or "nothing"
        yield Reason(f"{_silent(diagnosis)}; tried without success: {done}; check its console")


def _not_let_in(diagnosis: Diagnosis) -> Iterator[Reason]:
    if diagnosis.reach != "answers":
        yield Reason(diagnosis.sentence or f"the host cannot be diagnosed: {diagnosis.reach}")


def _unread(diagnosis: Diagnosis) -> Iterator[Reason]:
    if diagnosis.read is None:
        sentence = diagnosis.sentence or (diagnosis.audit.sentence if diagnosis.audit else "")
        yield Reason(f"the host answers but cannot be diagnosed: {sentence or 'no reason is known'}")


def _hardware(diagnosis: Diagnosis) -> Iterator[Reason]:
    for failure in broken(diagnosis):
        if failure.spent:
            again = (
                f", again after {failure.times} power cycles or reboots" if failure.times and failure.cure.tries else ""
            )
            yield Reason(failure.text + again, failure.key)


def _power_cycle(diagnosis: Diagnosis) -> Iterator[Reason]:
    seen = broken(diagnosis)
    if any(not failure.cure.gently for failure in seen):
        yield from (Reason(failure.text, failure.key) for failure in seen)


def _reboot(diagnosis: Diagnosis) -> Iterator[Reason]:
    yield from (Reason(failure.text, failure.key) for failure in broken(diagnosis))
    if "power cycle" not in diagnosis.tried:
        yield from (Reason(treatment.reason, finding.rule) for finding, treatment in _treated(diagnosis, Held))


def _misfit(diagnosis: Diagnosis) -> Iterator[Reason]:
    yield from (Reason(sentence) for sentence in dict.fromkeys(diagnosis.refusals))


def _full(diagnosis: Diagnosis) -> Iterator[Reason]:
    if "repair" in diagnosis.tried:
        return
    yield from map(Reason, diagnosis.no_room)
    for finding, treatment in _treated(diagnosis, NoRoom):
        if diagnosis.differs or not treatment.nearly:
            yield Reason(finding.cause, finding.rule)


def _still_full(diagnosis: Diagnosis) -> Iterator[Reason]:
    yield from map(Reason, diagnosis.no_room)
    full = (finding for finding, treatment in _treated(diagnosis, NoRoom) if not treatment.nearly)
    yield from (Reason(f"{finding.cause}: {finding.cure}", finding.rule) for finding in full)


def _for_people(diagnosis: Diagnosis) -> Iterator[Reason]:
    if not diagnosis.differs or "repair" in diagnosis.tried:
        yield from people(diagnosis)


def _tangled(diagnosis: Diagnosis) -> Iterator[Reason]:
    if "relayer" not in diagnosis.tried:
        for finding, treatment in _treated(diagnosis, Tangled):
            if finding.grave or diagnosis.differs:
                yield Reason(treatment.reason, finding.rule)


def _failed_before(diagnosis: Diagnosis) -> Iterator[Reason]:
    last = max(diagnosis.history, key=lambda rebuild: rebuild.at, default=None)
    if last is None or last.outcome != "failed" or "relayer" in diagnosis.tried or not diagnosis.differs:
        return
    if "repair" in last.ways and "relayer" not in last.ways:
        yield Reason(f"the rebuild of {last.at:%Y-%m-%d %H:%M} (run {last.run}) tried to repair the host and failed")


def _stuck(diagnosis: Diagnosis) -> Iterator[Reason]:
    if "relayer" not in diagnosis.tried and (not diagnosis.differs or "repair" in diagnosis.tried):
        yield from (
            Reason(treatment.reason, finding.rule) for finding, treatment in _treated(diagnosis, Stuck) if finding.grave
        )


def _repaired_in_vain(diagnosis: Diagnosis) -> Iterator[Reason]:
    if "repair" in diagnosis.tried and "relayer" not in diagnosis.tried:
        yield from (
            Reason(f"the host was repaired, but a problem remains: {problem.text}", problem.key)
            for problem in _wrong(diagnosis)
        )


def _differs(diagnosis: Diagnosis) -> Iterator[Reason]:
    if "repair" not in diagnosis.tried and "relayer" not in diagnosis.tried:
        yield from _wrong(diagnosis)


def _in_vain(diagnosis: Diagnosis) -> Iterator[Reason]:
    for problem in _wrong(diagnosis):
        yield Reason(
            f"after {' and '.join(diagnosis.tried)} the host is still not as desired: {problem.text}", problem.key
        )


def _not_verified(diagnosis: Diagnosis) -> Iterator[Reason]:
    if "nothing" in diagnosis.tried:
        yield Reason("the host matches its stack, but checks fail or it cannot return to service; see the failures")


def _as_desired(diagnosis: Diagnosis) -> Iterator[Reason]:  # noqa: ARG001 - same signature as the other rules
    yield Reason("the host is as desired")


def _wrong(diagnosis: Diagnosis) -> Iterator[Reason]:
    layers = {role.role: len(role.changes) for role in diagnosis.plan.roles if role.changes} if diagnosis.plan else {}
    if not layers and diagnosis.audit:
        names = [deviation.layer for deviation in diagnosis.audit.deviations]
        layers = {name: names.count(name) for name in dict.fromkeys(names)}
    if layers:
        text = ", ".join(f"{name} ({number})" for name, number in layers.items())
        yield Reason(f"these layers differ from the stack: {text}")
    yield from (Reason(finding.cause, finding.rule) for finding in diagnosis.findings if finding.grave)


def _treated(diagnosis: Diagnosis, kind: type[Kind]) -> Iterator[tuple[Finding, Kind]]:
    for finding in diagnosis.findings:
        treatment = diagnosis.treatments.get(finding.rule)
        if isinstance(treatment, kind):
            yield finding, treatment


def _silent(diagnosis: Diagnosis) -> str:
    return f"the host does not answer ({diagnosis.sentence})" if diagnosis.sentence else "the host does not answer"


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
