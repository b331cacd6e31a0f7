"""Tests that one hanging probe, whichever it is, leads to no conclusion, and that the audit and the plan name it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hostwright.audit.judging.audited import audit_probes
from hostwright.audit.judging.judging import judge, unprobed
from hostwright.common.errors import NOT_IN_TIME
from hostwright.fleet import Fleet
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.planning import NOT_ANSWERED, PREFLIGHT, plan_host
from hostwright.plan.targets import TargetHost

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
LATE = Answer(137, "half of it", late_s=40)


@pytest.fixture
def target(tmp_path: Path) -> TargetHost:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    return Fleet.load(tmp_path).targets("gpu01")[0]


def without(answers: dict[Probe, Answer], probe: Probe) -> Facts:
    return Facts({**answers, probe: LATE})


def test_an_audit_says_of_each_probe_that_hung_that_it_is_not_known(target: TargetHost) -> None:
    probes = audit_probes(target)
    answers = dict.fromkeys(probes, Answer(1, ""))
    whole = {(each.layer, each.what) for each in judge(target, Facts(answers), AT).deviations}
    for probe in probes:
        audit = judge(target, without(answers, probe), AT)
        concluded = {(each.layer, each.what) for each in audit.deviations}
        assert concluded <= whole, probe
        named = [skipped for skipped in audit.not_checked if skipped.reason.startswith(NOT_IN_TIME)]
        assert named, probe
        layers = {layer.name: layer.status for layer in audit.layers}
        assert all(layers.get(skipped.layer, "") != "desired" for skipped in audit.not_checked if unprobed(skipped))


def test_a_plan_changes_nothing_on_a_host_of_which_something_that_counts_is_not_known(target: TargetHost) -> None:
    probes = target.desired.probes()
    answers = dict.fromkeys(probes, Answer(1, ""))
    whole = set(plan_host(target.desired, Facts(answers)).plan.changes)
    of_states = {probe for role in target.desired.roles for resource in role.resources for probe in resource.probes()}
    for probe in probes:
        plan = plan_host(target.desired, without(answers, probe)).plan
        (preflight,) = (role.changes for role in plan.roles if role.role == PREFLIGHT)
        refused = [change for change in preflight if change.kind == "refusal" and change.rule == NOT_ANSWERED]
        assert set(plan.changes) - set(preflight) <= whole, probe
        assert refused or probe not in of_states, probe
