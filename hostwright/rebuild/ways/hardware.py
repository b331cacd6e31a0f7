"""Hardware failures in the diagnosis of a host, and how often each was already treated. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.audit.failures import Hardware
from hostwright.common.errors import Finding
from hostwright.rebuild.rebuild import Rebuild
from hostwright.rebuild.ways.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True)
class Broken:
    """A hardware failure of a host. ``key`` is the name of the known failure or of one of its cases.

    ``text`` is a sentence with untrusted text from the host. ``times`` is the number of recent power cycles and reboots
    for the same failure.
    """

    key: str
    cure: Hardware
    text: str
    times: int

    @property
    def spent(self) -> bool:
        """Whether the operator must act: no rebuild fixes the failure, or enough power cycles were tried."""
        return self.cure.way == "hand over" or self.times >= self.cure.tries


def broken(diagnosis: Diagnosis) -> tuple[Broken, ...]:
    """Return the hardware failures of a host, without failures that are only the consequence of another, treatable
    failure.
    """
    failures = [failure for finding in diagnosis.findings for failure in _broken(diagnosis, finding)]
    explained = {key for failure in failures if not failure.spent for key in failure.cure.explains}
    return tuple(failure for failure in failures if failure.key not in explained)


def _broken(diagnosis: Diagnosis, finding: Finding) -> Iterator[Broken]:
    cure = diagnosis.treatments.get(finding.rule)
    if not isinstance(cure, Hardware) or (cure.layer and _differs(diagnosis, cure.layer)):
        return
    cases = tuple(cure.cases(finding.evidence)) if cure.cases else ()
    for case in cases:
        yield _one(diagnosis, case.name, case.treatment, case.text)
    if not cases:
        yield _one(diagnosis, finding.rule, cure, f"{finding.cause} ({_first(finding)})")


def _one(diagnosis: Diagnosis, key: str, cure: Hardware, text: str) -> Broken:
    before = sum(_cycles(rebuild) for rebuild in diagnosis.history if key in rebuild.rules)
    return Broken(key, cure, text, before + diagnosis.tried.count("power cycle"))


def _cycles(rebuild: Rebuild) -> int:
    booted = any(name == "reboot" for name, _ in rebuild.phases)
    return rebuild.ways.count("power cycle") if booted else 0


def _differs(diagnosis: Diagnosis, role: str) -> bool:
    return (
        any(role_plan.role == role and role_plan.changes for role_plan in diagnosis.plan.roles)
        if diagnosis.plan
        else False
    )


def _first(finding: Finding) -> str:
    return finding.evidence[0] if finding.evidence else finding.rule
