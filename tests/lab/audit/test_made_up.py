"""For changed facts, the audit reports exactly the failures in them."""

from __future__ import annotations

from datetime import datetime

import pytest

from hostwright.audit.auditing import audit_host
from hostwright.audit.fleetaudit import GPU_LAYER, HostAudit
from hostwright.audit.judging.judging import judge
from hostwright.fleet import TargetHost
from hostwright.plan.model import Facts
from lab.config import Machine
from tests.lab.audit.made_up import MADE_UP, MadeUp
from tests.lab.conftest import FrontDoor, on
from tests.lab.telling import tell
from tests.unit.support.known import SIGNED

Clean = tuple[Facts, datetime]


@pytest.fixture(scope="module")
def clean(provisioned: FrontDoor, gpu01: Machine, target: TargetHost) -> Clean:
    """The facts of a host as desired, and the time of its probes."""
    on(gpu01, "systemctl start docker.service")  # waits until Docker is active, which it is not directly after a boot
    audit, facts = audit_host(target, lambda one: one.connect())
    assert facts is not None, audit.sentence
    assert (audit.deviations, audit.findings) == ((), ())
    return facts, datetime.fromisoformat(audit.at)


def judged(case: MadeUp, target: TargetHost, clean: Clean) -> HostAudit:
    facts, at = clean
    return judge(case.target(target), case.facts(facts), at, case.known)


@pytest.mark.parametrize("case", MADE_UP, ids=lambda case: case.name)
def test_exactly_what_is_there_is_found(case: MadeUp, target: TargetHost, clean: Clean) -> None:
    audit = judged(case, target, clean)
    assert {finding.rule for finding in audit.findings} == case.rules
    assert {one.check for one in audit.not_checked if one.layer == GPU_LAYER} == case.unread
    assert [finding.rule for finding in audit.findings if not all(finding.evidence)] == []


def test_all_are_found_and_none_is_invented(target: TargetHost, clean: Clean, pytestconfig: pytest.Config) -> None:
    found = [({one.rule for one in judged(case, target, clean).findings}, case.rules) for case in MADE_UP]
    wanted, right = sum(len(rules) for _, rules in found), sum(len(seen & rules) for seen, rules in found)
    invented = sum(len(seen - rules) for seen, rules in found)
    tell(pytestconfig, f"made-up: {right} of {wanted} found, {invented} invented, on {len(MADE_UP)} hosts")
    assert (right, invented) == (wanted, 0)


def test_every_rule_of_cards_has_a_case_and_every_case_a_name() -> None:
    covered = {rule for case in MADE_UP for rule in case.rules}
    assert {rule.name for rule in SIGNED if rule.sign and rule.sign.layer == GPU_LAYER} <= covered
    assert len({case.name for case in MADE_UP}) == len(MADE_UP)
