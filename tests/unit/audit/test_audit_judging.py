"""Tests that facts give a complete audit, and that no answer of a host breaks it."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit import auditing
from hostwright.audit.auditing import examine, fleet_audit, judged
from hostwright.audit.failures import Catalogue, FailureRule, Sign
from hostwright.audit.failures.catalogue import failures_of
from hostwright.audit.failures.rule import EVIDENCE_CHARACTERS
from hostwright.audit.failures.units import unit_journals
from hostwright.audit.judging import audited
from hostwright.audit.judging.alike import EVIDENCE_LINES, NOT_ASKED
from hostwright.audit.judging.audited import audit_probes, cards_of, rules_of
from hostwright.audit.judging.context import NOT_PROBED, Unread
from hostwright.audit.judging.judging import judge, unread
from hostwright.audit.reports.document import read_json, render_json
from hostwright.common.errors import Unreachable
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.facts.memory import Memory
from hostwright.plan.host.hostfacts import PCI, UNAME
from hostwright.plan.host.newrelease import renewed
from hostwright.plan.host.release import RELEASE, RunStamp
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
HOSTILE = "\x1b[31m</script>\x00=1+1\n'; rm -rf / #\u202e" * 3


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> TargetHost:
    folder = tmp_path_factory.mktemp("inventory")
    (folder / "hosts.yml").write_text("all: {hosts: {gpu01: {ansible_host: 192.0.2.1}}}")
    return Fleet.load(folder).targets("gpu01")[0]


def answered(target: TargetHost, answer: Answer, **special: Answer) -> Facts:
    return Facts(dict.fromkeys(audit_probes(target), answer))


def test_a_bare_host_is_new_and_every_layer_has_a_status(target: TargetHost):
    audit = judge(target, answered(target, Answer(1, "")), AT)
    assert audit.status == "new"
    assert {layer.name for layer in audit.layers} == {*(role.name for role in target.roles), "gpu"}
    assert {deviation.why for deviation in audit.deviations} == {"new"}
    assert audit.at == "2026-11-21T10:00:00+00:00"


def test_what_the_record_knows_has_drifted_and_a_changed_wish_is_intent(target: TargetHost, tmp_path: Path):
    record = renewed(target.desired, {}, RunStamp("run-1"))
    facts = {**answered(target, Answer(1, "")), RELEASE: Answer(0, json.dumps(record))}
    assert {deviation.why for deviation in judge(target, Facts(facts), AT).deviations} == {"drift"}

    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {base_packages: [dkms]}}}")
    changed = Fleet.load(tmp_path).targets("gpu01")[0]
    asked = dict.fromkeys(audit_probes(changed), Answer(1, ""))
    why = {
        deviation.what: deviation.why
        for deviation in judge(changed, Facts({**asked, **facts}), AT).deviations
        if deviation.layer == "base"
    }
    assert why["packages dkms"] == "intent"
    assert set(why.values()) == {"drift", "intent"}


def test_without_root_root_values_are_not_read_and_not_blamed(target: TargetHost):
    probes = audit_probes(target, sudo=False)
    assert not any(probe.root for probe in probes)
    audit = judge(target, Facts(dict.fromkeys(probes, Answer(1, ""))), AT)
    assert {skipped.reason for skipped in audit.not_checked if skipped.layer == "driver"} >= {NOT_ASKED}


def test_every_question_is_asked_once(target: TargetHost):
    probes = audit_probes(target)
    assert len(set(probes)) == len(probes)
    assert set(target.desired.probes()) <= set(probes)


def with_roles(folder: Path, *roles: str) -> TargetHost:
    """The host ``gpu01`` with these roles; by default, with those of its stack."""
    more = f"{{hostwright_roles: [{', '.join(roles)}]}}" if roles else "{}"
    (folder / "hosts.yml").write_text(f"all: {{hosts: {{gpu01: {more}}}}}")
    return Fleet.load(folder).targets("gpu01")[0]


def signs_of(target: TargetHost, *roles: str) -> set[Probe]:
    """The probes of the failure rules of these roles."""
    rules = (rule for role in target.all_roles if role.name in roles for rule in failures_of(role))
    return {probe for rule in rules if rule.sign for probe in rule.sign.probes}


def test_host_gets_only_the_probes_of_its_roles_rules(tmp_path: Path):
    """Probes for users and cards run on every host: they belong to none of its roles."""
    target = with_roles(tmp_path, "base")
    others = [role.name for role in target.all_roles if role.name != "base"]
    cards = {probe for part in cards_of(target) for probe in part.probes}
    about_cards = [rule.sign for rule in rules_of(target).signed if rule.sign and rule.sign.layer == "gpu"]
    assert about_cards
    cards |= {probe for sign in about_cards for probe in sign.probes}
    of_every_host = {*target.desired.probes(), *cards}
    asked = set(audit_probes(target))
    assert len(signs_of(target, *others) - of_every_host) > 20
    assert signs_of(target, "base") <= asked
    assert asked & signs_of(target, *others) <= of_every_host | signs_of(target, "base")
    assert of_every_host <= asked


def test_a_host_with_all_roles_is_asked_the_probes_of_all_rules(target: TargetHost):
    assert signs_of(target, *(role.name for role in target.roles)) <= set(audit_probes(target))


@pytest.mark.parametrize(
    "roles",
    [
        ("base",),
        ("base", "driver"),
        ("base", "driver", "cuda"),
        ("base", "tensorflow"),
        ("base", "driver", "container"),
    ],
)
def test_probes_suffice_for_every_rule_of_a_host(tmp_path: Path, roles: tuple[str, ...]):
    target = with_roles(tmp_path, *roles)
    audit = judge(target, answered(target, Answer(0, "")), AT)
    assert [skipped for skipped in audit.not_checked if skipped.reason in (NOT_ASKED, NOT_PROBED)] == []
    assert {finding.layer for finding in audit.findings} <= {*roles, "gpu"}


def test_roles_that_are_not_looked_at_now_are_still_the_hosts(tmp_path: Path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    one_role = Fleet.load(tmp_path).targets("gpu01", ["base"])[0]
    assert signs_of(one_role, "driver", "container") <= set(audit_probes(one_role))


def rule(name: str, seen) -> FailureRule:
    return FailureRule(name, "", "cause", "cure", "source", sign=Sign("gpu", seen))


def test_provisioning_does_not_fix_what_is_of_a_layer_whose_plan_is_refused(
    target: TargetHost, monkeypatch: pytest.MonkeyPatch
):
    """The layer is the driver's, on a host without a card."""
    signs = {layer: Sign(layer, lambda _: ("x",), provision=True) for layer in ("base", "driver")}
    rules = tuple(FailureRule(layer, "", "cause", "cure", "source", sign=sign) for layer, sign in signs.items())
    monkeypatch.setattr(audited, "catalogue", lambda *_: Catalogue(rules))
    audit = judge(replace(target, memory=Memory()), answered(target, Answer(1, "")), AT)
    assert {finding.layer: finding.provision for finding in audit.findings} == {"base": True, "driver": False}


def test_a_rule_that_cannot_tell_is_not_the_hosts_fault(target: TargetHost, monkeypatch: pytest.MonkeyPatch):
    def cannot(ctx):
        raise Unread("nvidia-smi is silent")

    def many(ctx):
        yield from (f"line {number} " + "x" * 1000 for number in range(50))

    rules = (rule("blind", cannot), rule("loud", many))
    monkeypatch.setattr(audited, "catalogue", lambda *_: Catalogue(rules))
    target = replace(target, memory=Memory())
    audit = judge(target, answered(target, Answer(1, "")), AT)
    assert [(skipped.check, skipped.reason) for skipped in audit.not_checked] == [("blind", "nvidia-smi is silent")]
    (loud,) = audit.findings
    assert len(loud.evidence) == EVIDENCE_LINES + 1
    assert loud.evidence[-1] == "… and 45 more"
    assert max(map(len, loud.evidence)) <= EVIDENCE_CHARACTERS


def test_a_host_that_could_not_be_reached_has_all_its_layers_unread(target: TargetHost):
    audit = unread(target, "connection refused", AT)
    assert (audit.status, audit.sentence) == ("unread", "connection refused")
    assert {layer.status for layer in audit.layers} == {"unread"}


def test_cards_of_which_nothing_can_be_read_are_unread_and_not_as_desired(target: TargetHost):
    """Two cards are on the bus, and nvidia-smi exits with status 9."""
    nothing = dict.fromkeys(audit_probes(target), Answer(0, ""))
    facts = Facts({**nothing, PCI: Answer(0, "0x10de 0x030200 0x1eb8\n" * 2), NVIDIA_SMI: Answer(9, "")})
    audit = judge(target, facts, AT)
    assert {layer.name: layer.status for layer in audit.layers}["gpu"] == "unread"
    assert "nvidia-smi ended with status 9" in {one.reason for one in audit.not_checked if one.check == "cards"}
    without = judge(target, Facts({**facts, PCI: Answer(0, "")}), AT)
    assert [one for one in without.not_checked if one.check == "cards"] == []


def test_a_defect_of_ours_is_said_and_ends_no_audit(target: TargetHost, monkeypatch: pytest.MonkeyPatch):
    def broken(ctx):
        raise RuntimeError("oops")

    monkeypatch.setattr(audited, "catalogue", lambda *_: Catalogue((rule("broken", broken),)))
    target = replace(target, memory=Memory())
    audit = judged(target, answered(target, Answer(0, "")), AT)
    assert audit.status == "unread"
    assert "RuntimeError: oops" in audit.sentence


ODD = ("", "0", "-1", "9" * 400, "٣", "a=b", "nan", "{", "[" * 5000, "N/A", "<a>", "470.182.03", "|", "\t")
lines = st.lists(st.one_of(st.sampled_from(ODD), st.text(max_size=30)), max_size=6).map(" ".join)
texts = st.one_of(st.just(HOSTILE), st.lists(lines, max_size=8).map("\n".join), st.just("[" * 200_000))
#: as returned by ``probing.parse``
answers = st.builds(
    Answer,
    st.sampled_from([0, 1, 15, 124, 127, 255]),
    texts.map(lambda text: text.replace("\0", "\ufffd")),
    st.booleans(),
)


@given(st.lists(answers, min_size=3, max_size=3), st.randoms(use_true_random=False))
def test_no_answer_of_a_host_breaks_the_judgement(target: TargetHost, some: list[Answer], chance: random.Random):
    """Each probe of an audit is answered with different garbage, and the result is a complete document."""
    facts = Facts({probe: chance.choice(some) for probe in audit_probes(target)})
    audit = fleet_audit([judge(target, facts, AT)], inventory="x", began=AT)
    assert read_json(render_json(audit)) == audit


def test_the_kernel_is_read_once_for_rules_and_values(target: TargetHost):
    assert UNAME in audit_probes(target)


def test_a_host_that_failed_is_asked_what_doctor_asks(target: TargetHost, monkeypatch: pytest.MonkeyPatch):
    """The sentence states the findings, or the number of signs; if the host cannot be probed, the error."""
    facts = answered(target, Answer(1, ""))
    monkeypatch.setattr(auditing, "ask", lambda shell, probes, *, timeout_s: facts)
    found = examine(target, None)
    assert found.findings == judge(target, facts, AT).findings
    assert re.match(r"(no|[0-9]+) known problems? found on the host \([0-9]+ signs searched for", found.sentence)

    def silent(shell: object, probes: object, *, timeout_s: float) -> Facts:
        raise Unreachable("gpu01", f"no answer within {timeout_s:.0f} s")

    monkeypatch.setattr(auditing, "ask", silent)
    nothing = examine(target, None)
    assert (nothing.findings, nothing.sentence) == (
        (),
        "known problems could not be checked on the host: no answer within 60 s",
    )


def test_journals_are_asked_for_in_the_same_look_and_told_without_secrets(
    target: TargetHost, monkeypatch: pytest.MonkeyPatch
):
    logged, looks = unit_journals(["a.service"]), list[tuple[Probe, ...]]()

    def ask(shell: object, probes: tuple[Probe, ...], *, timeout_s: float) -> Facts:
        looks.append(probes)
        return Facts({**dict.fromkeys(probes, Answer(1, "")), logged: Answer(0, "a.service a.service: key hunter2\n")})

    monkeypatch.setattr(auditing, "ask", ask)
    found = examine(target, None, ["a.service"], lambda text: text.replace("hunter2", "***"))
    assert [journal.last for journal in found.journals] == ["key ***"]
    assert looks == [(*audit_probes(target), logged)]
