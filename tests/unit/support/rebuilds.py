"""Diagnoses and records for tests of rebuilds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hostwright.common.errors import Finding
from hostwright.plan.model import Change, Plan, Reboot, Refusal, RolePlan, Step
from hostwright.rebuild.rebuild import Outcome, Phase, Rebuild, Way
from hostwright.rebuild.ways.diagnosis import Diagnosis
from tests.unit.support.audits import host
from tests.unit.support.known import BY_NAME, TREATMENTS

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
RULES = BY_NAME


def finding(name: str, *evidence: str) -> Finding:
    """An audit's finding with this failure name."""
    rule = RULES[name]
    assert rule.sign is not None
    return Finding(
        name, rule.sign.layer, rule.sign.grave, evidence or ("seen",), rule.cause, rule.cure, rule.sign.provision,
        rule.link,
    )  # fmt: skip


def xid(*numbers: int) -> Finding:
    """Xids found on a host."""
    return finding("xid-fatal", *(f"Xid {number} on card 0 (0000:3b:00), once: it failed" for number in numbers))


def plan(*roles: str, refusal: str = "", what: str = "something", reboot: str = "") -> Plan:
    """A plan that changes these roles; ``refusal`` forbids the first role, with a rule named ``what``."""
    change = Reboot(what, "a", "b", reboot) if reboot else Change(what, "a", "b", (Step("true"),))
    found = [RolePlan(role, (), (change,)) for role in roles]
    if refusal:
        refused = Refusal(what, "a", "b", what.replace(" ", "-"), refusal)
        found = [RolePlan(roles[0], (), (refused,)), *found[1:]]
    return Plan("gpu07", "tensorflow-2.9", tuple(found))


def answers(*findings: Finding, differs: tuple[str, ...] = (), **more) -> Diagnosis:
    """The diagnosis of a reachable host with these failures, whose plan changes these roles."""
    values = {
        "audit": host("gpu07", findings=findings),
        "plan": plan(*differs),
        "power": "on",
        "treatments": TREATMENTS,
    }
    return Diagnosis("gpu07", **{"reach": "answers", **values, **more})


def silent(**more) -> Diagnosis:
    """The diagnosis of an unreachable host that is powered on."""
    return Diagnosis("gpu07", "silent", **{"sentence": "it did not answer within 10 s", "power": "on", **more})


def rebuild(
    *ways: Way,
    outcome: Outcome = "rebuilt",
    name: str = "gpu07",
    days_ago: float = 1,
    phases: dict[Phase, float] | None = None,
    **more,
) -> Rebuild:
    """The record of a rebuild; a power cycle in it reached the next boot, unless ``phases`` sets other phases."""
    if phases is None:
        phases = {"reboot": 60.0} if "power cycle" in ways else {}
    taken = tuple(phases.items())
    values = {"phases": taken, "total_s": sum((seconds for _, seconds in taken), 0.0)}
    at = NOW - timedelta(days=days_ago)
    return Rebuild(name, "run-1", at, "ada@desk", ways, outcome, **{**values, **more})
