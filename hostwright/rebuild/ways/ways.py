"""Choice of the method to rebuild a host: the least invasive method that can work, or the requested method. Pure
functions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hostwright.rebuild.rebuild import STARTS, Way
from hostwright.rebuild.ways.diagnosis import Diagnosis
from hostwright.rebuild.ways.hardware import broken
from hostwright.rebuild.ways.rules import RULES, Reason, Rule, people

#: kind of power cycle: through the BMC, or as a reboot over SSH
By = Literal["", "bmc", "ssh"]

_PROVISIONED = ("provision all layers", "verify", "return to service")
_AS_FOUND = ("diagnose it again and continue from there",)
#: method → descriptions of the steps, in the order of execution
STEPS: dict[Way, tuple[str, ...]] = {
    "nothing": ("verify", "return to service if it was drained"),
    "repair": ("drain", "provision what differs", "verify", "return to service"),
    "relayer": ("drain", "remove all layers, last one first", *_PROVISIONED),
    "power on": ("power it on through its BMC", "wait until it answers", *_AS_FOUND),
    "reinstall": ("drain it if it answers", "install a new operating system",
                  "wait until it answers with its new host key", *_PROVISIONED),
    "trust": ("confirm its new host key through its console", *_AS_FOUND),
    "hand over": ("drain", "lock it with the reason", "leave it for manual work"),
}  # fmt: skip
_CUT = ("drain it if it answers", "power-cycle it through its BMC", "wait until it answers", *_AS_FOUND)
_REBOOT = ("drain", "reboot it over SSH", "wait until it answers", *_AS_FOUND)
CLEAN = "delete Hostwright's old files from its disk"
HUNG = "(power-cycle it if it does not come back from a reboot)"
_LAYERS: frozenset[Way] = frozenset({"nothing", "repair", "relayer"})
_POWER: tuple[Way, ...] = ("power on", "power cycle")
ENDS_ALL: tuple[Way, ...] = ("relayer", "power cycle", "reinstall")
_FINDS_OUT: tuple[Way, ...] = (*_POWER, "trust")  #: methods after which Hostwright diagnoses the host again


@dataclass(frozen=True, slots=True)
class Decision:
    """The chosen method to rebuild a host. Texts may contain untrusted text from the host.

    ``refusal`` is the reason why Hostwright can do nothing, else empty. ``escalation`` are the methods that may follow,
    each if the previous one fails. ``rules`` are the names of the rule that decided and of known failures behind that
    rule. ``by`` is the kind of power cycle. With ``clean``, Hostwright's old files are first deleted from the host.
    ``ends`` are the users whose work ends, even if a service restarts the work.
    """

    way: Way
    reasons: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    escalation: tuple[Way, ...] = ()
    refusal: str = ""
    rules: tuple[str, ...] = ()
    by: By = ""
    clean: bool = False
    ends: tuple[str, ...] = ()

    @property
    def gently(self) -> bool:
        """Whether the power cycle is a reboot over SSH."""
        return self.by == "ssh"


def decide(diagnosis: Diagnosis, start: Way | None = None) -> Decision:
    """Choose the least invasive method that can work for this host, or the method ``start`` (``--from``).

    ``start`` is chosen even for broken hardware. Before ``start``, a host that does not answer is powered on, and a
    changed host key is confirmed. Once ``start`` has been tried, it has no further effect.
    """
    if start is None or start in diagnosis.tried:
        return _by_rules(diagnosis)
    if start not in STARTS:
        return Decision(
            "nothing", refusal=f"--from {start!r:.40}: expected one of {', '.join(STARTS)}", rules=("start",)
        )
    own = _by_rules(diagnosis)
    why_not = _forbids(diagnosis, start, own)
    if why_not is not None:
        return why_not
    if start != "reinstall" and diagnosis.reach != "answers":
        return replace(own, reasons=(*own.reasons, f"then {start}, as requested with --from"))
    asked = (f"requested with --from {start}", *_said_of_hardware(diagnosis), *_instead(own, start))
    rules = dict.fromkeys([*own.rules[:1], "start", *(failure.key for failure in broken(diagnosis))])
    return _made(diagnosis, start, asked, tuple(rules), clean=own.clean)


def decide_again(
    first: Decision, diagnosis: Diagnosis, start: Way | None = None, *, went_down: bool = False
) -> Decision:
    """Choose the next method of a rebuild after a method has failed; ``diagnosis.tried`` has the methods so far.

    A reinstall, or a power cycle after a repair of layers, is chosen only if ``first``, the decision that the operator
    saw, announced this method. A host that stops answering during a repair is left unchanged, unless it ``went_down``
    for a reboot.
    """
    worked_on = _LAYERS & set(diagnosis.tried)
    if diagnosis.reach == "silent" and worked_on and not went_down:
        why = "the connection was lost while it was being worked on; its jobs keep running: run the same command again"
        return _made(diagnosis, "nothing", (why, diagnosis.sentence), ("lost",), refuses=True)
    now = decide(diagnosis, start)
    because = "; ".join(now.reasons)
    if now.way == "reinstall" and not (start == "reinstall" or "reinstall" in (first.way, *first.escalation)):
        why = f"only a reinstall is left ({because}), and that was not announced: request it with --from reinstall"
        return _made(diagnosis, "hand over", (why,), now.rules, refuses=True)
    announced = first.way in _FINDS_OUT or now.way in first.escalation or went_down
    if now.way in _POWER and worked_on and not announced:
        why = f"it now needs a {now.way} ({because}), which was not announced: run the same command again"
        return _made(diagnosis, "nothing", (why,), now.rules, refuses=True)
    return now


def _by_rules(diagnosis: Diagnosis) -> Decision:
    for rule in RULES:
        reasons = list(rule.why(diagnosis))
        if reasons:
            return _decided(diagnosis, rule, reasons)
    raise AssertionError("internal error: no rule applies to the host")


def _decided(diagnosis: Diagnosis, rule: Rule, reasons: list[Reason]) -> Decision:
    texts = [reason.text for reason in reasons]
    if not rule.refuses:
        texts += [*(reason.text for reason in people(diagnosis)), *_notes(diagnosis)]
    names = dict.fromkeys([rule.name, *(reason.key for reason in reasons if reason.key)])
    return _made(
        diagnosis, rule.way, tuple(dict.fromkeys(texts)), tuple(names),
        gently=rule.gently, clean=rule.cleans, refuses=rule.refuses,
    )  # fmt: skip


def _made(
    diagnosis: Diagnosis,
    way: Way,
    reasons: tuple[str, ...],
    rules: tuple[str, ...],
    *,
    gently: bool = False,
    clean: bool = False,
    refuses: bool = False,
) -> Decision:
    by: By = ""
    steps = STEPS.get(way, ())
    if way == "power cycle":
        by = "bmc" if diagnosis.usable_bmc and not gently else "ssh"
        steps = _CUT if by == "bmc" else _REBOOT
    if clean:
        steps = (steps[0], CLEAN, *steps[1:])
    if way in ("repair", "relayer") and diagnosis.usable_bmc and diagnosis.reboots:
        steps = (*steps, HUNG)
    if refuses and way == "nothing":
        steps = ()
    refusal = "; ".join(reasons) if refuses else ""
    ends = diagnosis.running if way in ENDS_ALL else diagnosis.disturbed if way == "repair" else ()
    return Decision(way, reasons, steps, _escalation(diagnosis, way), refusal, rules, by, clean, ends)


def _escalation(diagnosis: Diagnosis, way: Way) -> tuple[Way, ...]:
    """Return the methods that may follow if ``way`` fails.

    ``reinstall`` follows only for a host that does not answer, because the disks of any other host may contain data
    that is needed.
    """
    wipes = diagnosis.reach == "silent" and diagnosis.can_reinstall and diagnosis.usable_bmc
    wipe: tuple[Way, ...] = ("reinstall",) if wipes else ()
    follows: dict[Way, tuple[Way, ...]] = {
        "repair": ("relayer",),
        "power on": ("power cycle", *wipe),
        "power cycle": wipe,
    }
    return tuple(following for following in follows.get(way, ()) if following not in diagnosis.tried)


def _forbids(diagnosis: Diagnosis, start: Way, own: Decision) -> Decision | None:
    if start != "reinstall":
        if diagnosis.reach != "answers" or diagnosis.read is None:
            return own if own.refusal or own.way in ("reinstall", "hand over") else None
        misfit = "; ".join(diagnosis.refusals)
        return _made(diagnosis, "nothing", (misfit,), ("misfit",), refuses=True) if misfit else None
    if not diagnosis.can_reinstall:
        why = "no reinstall is configured for it: set hostwright_install or hostwright_reinstall in the inventory"
        return _made(diagnosis, "nothing", (why,), ("start",), refuses=True)
    if diagnosis.can_reinstall == "command" or diagnosis.usable_bmc:
        return None
    if not diagnosis.has_bmc:
        why = "reinstalling it needs a BMC, and the inventory names none: set hostwright_bmc"
        return _made(diagnosis, "nothing", (why,), ("start",), refuses=True)
    notes = _notes(diagnosis) or ("its BMC does not report whether the power is on",)
    return _made(diagnosis, "hand over", notes, ("bmc-unknown",), refuses=True)


def _notes(diagnosis: Diagnosis) -> tuple[str, ...]:
    if diagnosis.foreign_bmc:
        return ("it answers, but its BMC reports that it is off: that BMC is wrong or another host's, and is not used",)
    if diagnosis.power == "unknown" and diagnosis.power_sentence:
        return (f"its BMC cannot be used: {diagnosis.power_sentence}",)
    return ()


def _said_of_hardware(diagnosis: Diagnosis) -> tuple[str, ...]:
    return tuple(f"its hardware is broken: {failure.text}" for failure in broken(diagnosis))


def _instead(own: Decision, start: Way) -> tuple[str, ...]:
    if own.way == start:
        return own.reasons
    return (f"without --from it would be {own.way}: {'; '.join(own.reasons)}",)
