"""Failures of the hardware among what was found on a host, with what they ask for and how often they came. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.audit.values import Finding
from hostwright.hardware.xid_catalog import meaning_of
from hostwright.rebuild.values import Rebuild
from hostwright.rebuild.ways.cures import HARDWARE, REPLACE_TOGETHER, TOGETHER, XID_CURES, XID_ELSE, Cure
from hostwright.rebuild.ways.diagnosis import Diagnosis

#: how the rule ``xid-fatal`` begins its evidence (``failures.xids.told``); what follows is the host's own text
_XID = re.compile(r"Xid (\d{1,3}) on ")
XID_RULE, LOST_RULE, NONE_RULE = "xid-fatal", "gpu-lost", "no-gpu"
FEWER = "gpus-fewer"  #: fewer cards on the PCI bus than the inventory says


@dataclass(frozen=True, slots=True)
class Broken:
    """One failure of the hardware. ``key`` is the rule's name, or the Xid's number (``xid-48``), and stands in records.

    ``text`` is a sentence with the host's own evidence: untrusted. ``times`` is how often the power was cycled, or the
    host rebooted, for the same lately, in this rebuild too.
    """

    key: str
    cure: Cure
    text: str
    times: int

    @property
    def spent(self) -> bool:
        """Whether people have to look: nothing that a rebuild does cures it, or that was done often enough."""
        return self.cure.way == "hand over" or self.times >= self.cure.tries


def broken(diagnosis: Diagnosis) -> tuple[Broken, ...]:
    """The failures of the hardware on this host. A missing card that fell off the bus counts as one failure."""
    found = [one for finding in diagnosis.findings for one in _broken(diagnosis, finding)]
    found += _fewer(diagnosis)
    if any(one.key == LOST_RULE and not one.spent for one in found):
        return tuple(one for one in found if one.key not in (FEWER, NONE_RULE))
    return tuple(found)


def _broken(diagnosis: Diagnosis, finding: Finding) -> Iterator[Broken]:
    cure = HARDWARE.get(finding.rule)
    if cure is None or (cure.by_driver and _differs(diagnosis, "driver")):
        return
    if finding.rule != XID_RULE:
        yield _one(diagnosis, finding.rule, cure, f"{finding.cause} ({_first(finding)})")
        return
    numbers = list(dict.fromkeys(int(match[1]) for line in finding.evidence if (match := _XID.match(line))))
    for number in numbers:
        xid = meaning_of(number)
        by_action = XID_CURES.get(xid.action, XID_ELSE)
        chosen = TOGETHER if number in REPLACE_TOGETHER and set(numbers) >= REPLACE_TOGETHER else by_action
        yield _one(diagnosis, f"xid-{number}", chosen, f"Xid {number}: {xid.meaning}")
    if not numbers:
        yield _one(diagnosis, XID_RULE, cure, f"{finding.cause} ({_first(finding)})")


def _fewer(diagnosis: Diagnosis) -> Iterator[Broken]:
    """Whether cards are missing. None at all is what the rule ``no-gpu`` tells, which knows whether the bus could be
    read; nor can fewer be on the bus than nvidia-smi lists.
    """
    seen, expected = diagnosis.seen_gpus, diagnosis.expected_gpus
    listed = len(diagnosis.audit.gpus) if diagnosis.audit else 0
    if seen and expected is not None and listed <= seen < expected:
        text = f"{seen} of its {expected} GPUs are on the PCI bus"
        yield _one(diagnosis, FEWER, HARDWARE[NONE_RULE], text)


def _one(diagnosis: Diagnosis, key: str, cure: Cure, text: str) -> Broken:
    before = sum(_cycles(one) for one in diagnosis.history if key in one.rules)
    return Broken(key, cure, text, before + diagnosis.tried.count("power cycle"))


def _cycles(one: Rebuild) -> int:
    """How often the host went down in an earlier rebuild: an order that its BMC refused was followed by no boot."""
    booted = any(name == "reboot" for name, _ in one.phases)
    return one.ways.count("power cycle") if booted else 0


def _differs(diagnosis: Diagnosis, role: str) -> bool:
    return any(one.role == role and one.changes for one in diagnosis.plan.roles) if diagnosis.plan else False


def _first(finding: Finding) -> str:
    return finding.evidence[0] if finding.evidence else finding.rule
