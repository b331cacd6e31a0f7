"""Which way a host is rebuilt: a row for each rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostwright.rebuild.rebuild import Way
from hostwright.rebuild.ways.diagnosis import Diagnosis
from hostwright.rebuild.ways.rules import RULES
from hostwright.rebuild.ways.ways import CLEAN, HUNG, decide, decide_again
from tests.unit.support.audits import WARNING, host
from tests.unit.support.rebuilds import answers, finding, plan, rebuild, silent, xid

LOST = finding("gpu-lost", "card at 0000:3b:00: GPU has fallen off the bus")
TWICE = (rebuild("power cycle", rules=("power-cycle", "gpu-lost")),) * 2
FULL_DISK = plan("base", refusal="too little disk for CUDA", what="free disk")

#: rule → a host for which it decides, and the way
TABLE: tuple[tuple[str, Diagnosis, Way], ...] = (
    ("as-desired", answers(), "nothing"),
    ("as-desired", answers(tried=("repair",)), "nothing"),
    ("not-verified", answers(tried=("repair", "nothing")), "hand over"),
    ("as-desired", answers(WARNING), "nothing"),
    ("differs", answers(differs=("cuda",)), "repair"),
    ("differs", answers(finding("module-missing"), differs=("driver",)), "repair"),
    ("differs", answers(finding("container-without-driver"), differs=("driver",)), "repair"),
    ("differs", answers(finding("no-wheel"), differs=("tensorflow",)), "repair"),
    ("tangled", answers(finding("driver-versions-mixed"), differs=("driver",)), "relayer"),
    ("tangled", answers(finding("other-installer"), differs=("base",)), "relayer"),
    ("tangled", answers(finding("dkms-build"), differs=("driver",)), "relayer"),
    ("tangled", answers(finding("loader-finds-another-cuda")), "relayer"),
    ("as-desired", answers(finding("dkms-other-driver")), "nothing"),
    ("tangled", answers(finding("dkms-other-driver"), differs=("driver",)), "relayer"),
    ("failed-before", answers(differs=("cuda",), history=(rebuild("repair", outcome="failed"),)), "relayer"),
    ("differs", answers(differs=("cuda",), history=(rebuild("repair"),)), "repair"),
    ("differs", answers(differs=("cuda",), history=(rebuild("repair", outcome="failed", days_ago=3),
                                                    rebuild("repair", days_ago=1))), "repair"),
    ("stuck", answers(finding("toolkit-fails")), "relayer"),
    ("stuck", answers(finding("toolkit-fails"), differs=("container",), tried=("repair",)), "relayer"),
    ("in-vain", answers(finding("toolkit-fails"), tried=("relayer",)), "hand over"),
    ("in-vain", answers(finding("dkms-build"), tried=("relayer",)), "hand over"),
    ("in-vain", answers(differs=("cuda",), tried=("relayer",),
                        history=(rebuild("repair", outcome="failed"),)), "hand over"),
    ("repaired-in-vain", answers(differs=("cuda",), tried=("repair",)), "relayer"),
    ("in-vain", answers(differs=("cuda",), tried=("repair", "relayer")), "hand over"),
    ("people", answers(finding("docker-masked")), "hand over"),
    ("people", answers(finding("no-wheel"), differs=("tensorflow",), tried=("repair",)), "hand over"),
    ("misfit", answers(plan=plan("driver", refusal="kernel 6.8 does not fit")), "nothing"),
    ("full", answers(plan=FULL_DISK), "repair"),
    ("full", answers(finding("no-space")), "repair"),
    ("full", answers(finding("disk-nearly-full"), differs=("cuda",)), "repair"),
    ("as-desired", answers(finding("disk-nearly-full")), "nothing"),
    ("still-full", answers(plan=FULL_DISK, tried=("repair",)), "hand over"),
    ("power-cycle", answers(LOST), "power cycle"),
    ("power-cycle", answers(LOST, history=TWICE[:1]), "power cycle"),
    ("hardware", answers(LOST, history=TWICE), "hand over"),
    ("hardware", answers(LOST, history=TWICE[:1], tried=("power cycle",)), "hand over"),
    ("power-cycle", answers(LOST, history=(rebuild("power cycle", "power cycle", rules=("silent",)),)), "power cycle"),
    ("power-cycle", answers(xid(79)), "power cycle"),
    ("reboot", answers(xid(95)), "power cycle"),
    ("reboot", answers(xid(48)), "power cycle"),
    ("hardware", answers(xid(48, 64)), "hand over"),
    ("hardware", answers(xid(54)), "hand over"),
    ("hardware", answers(xid(95), history=(rebuild("power cycle", "power cycle", rules=("xid-95",)),)), "hand over"),
    ("reboot", answers(xid(48), history=(rebuild("power cycle", "power cycle", rules=("xid-95",)),)), "power cycle"),
    ("reboot", answers(finding("row-remap-pending")), "power cycle"),
    ("power-cycle", answers(finding("row-remap-pending"), LOST), "power cycle"),
    ("hardware", answers(finding("row-remap-failed")), "hand over"),
    ("hardware", answers(finding("rows-remapped-many")), "hand over"),
    ("hardware", answers(finding("sram-threshold-exceeded")), "hand over"),
    ("hardware", answers(finding("row-remap-failed"), LOST, differs=("cuda",)), "hand over"),
    ("hardware", answers(finding("no-gpu"), differs=("driver",)), "hand over"),
    ("power-cycle", answers(finding("no-gpu"), LOST), "power cycle"),
    ("hardware", answers(finding("mounted-read-only")), "hand over"),
    ("power-cycle", answers(finding("gpu-missing")), "power cycle"),
    ("hardware", answers(finding("gpu-missing"), tried=("power cycle",)), "hand over"),
    ("differs", answers(finding("gpu-missing"), differs=("driver",)), "repair"),
    ("hardware", answers(finding("gpus-fewer")), "hand over"),
    ("power-cycle", answers(LOST, finding("gpus-fewer")), "power cycle"),
    ("hardware", answers(LOST, finding("gpus-fewer"), history=TWICE), "hand over"),
    ("reboot", answers(finding("module-in-use"), differs=("driver",)), "power cycle"),
    ("differs", answers(finding("module-in-use"), differs=("driver",), tried=("power cycle",)), "repair"),
    ("off", silent(power="off"), "power on"),
    ("stays-off", silent(power="off", tried=("power on",)), "hand over"),
    ("silent", silent(), "power cycle"),
    ("silent", silent(tried=("power on",)), "power cycle"),
    ("still-silent", silent(tried=("power cycle",), can_reinstall="redfish"), "reinstall"),
    ("silent-for-good", silent(tried=("power cycle",)), "hand over"),
    ("silent-for-good", silent(tried=("power cycle", "reinstall"), can_reinstall="redfish"), "hand over"),
    ("silent-for-good", silent(power=None, can_reinstall="command"), "hand over"),
    ("bmc-unknown", silent(power="unknown", power_sentence="the BMC refuses the user admin"), "hand over"),
    ("key-changed", Diagnosis("gpu07", "key changed", "it shows another key", power="on"), "trust"),
    ("not-let-in", Diagnosis("gpu07", "key changed", "still", tried=("trust",)), "nothing"),
    ("not-let-in", Diagnosis("gpu07", "refused login", "no key is taken", can_reinstall="redfish", power="on"),
     "nothing"),
    ("not-let-in", Diagnosis("gpu07", "no way", "its jump host is away", can_reinstall="redfish", power="on"),
     "nothing"),
    ("unread", Diagnosis("gpu07", "answers", "its answer was cut"), "nothing"),
    ("unread", answers(audit=host("gpu07", "unread", sentence="no sudo")), "nothing"),
)  # fmt: skip


@pytest.mark.parametrize(("rule", "diagnosis", "way"), TABLE)
def test_the_way(rule: str, diagnosis: Diagnosis, way: Way):
    decision = decide(diagnosis)
    assert (decision.rules[0], decision.way) == (rule, way)
    assert all(decision.reasons) and decision.reasons
    of_rule = next(one for one in RULES if one.name == rule)
    assert bool(decision.refusal) == of_rule.refuses
    assert bool(decision.steps) == (way != "nothing" or not of_rule.refuses)
    assert decision.escalation == decide(diagnosis).escalation


def test_every_rule_has_a_row_a_unique_name_and_a_source():
    names = [rule.name for rule in RULES]
    assert {row[0] for row in TABLE} == set(names)
    assert len(set(names)) == len(names)
    assert all(rule.source for rule in RULES)


def test_power_cycle_uses_the_bmc_unless_a_reboot_suffices():
    assert decide(answers(LOST)).by == "bmc"
    assert decide(answers(LOST, power=None)).by == "ssh"
    assert decide(answers(LOST, power="unknown", power_sentence="401")).by == "ssh"
    assert decide(answers(xid(95))).by == "ssh"
    assert decide(silent()).by == "bmc"
    assert decide(answers(xid(95))).gently and not decide(silent()).gently


def test_bmc_reporting_a_reachable_host_as_off_is_not_used():
    decision = decide(answers(LOST, power="off"))
    assert decision.by == "ssh"
    assert any("another host's" in reason for reason in decision.reasons)
    asked = decide(answers(power="off", can_reinstall="redfish"), "reinstall")
    assert asked.way == "hand over" and "another host's" in asked.refusal


def test_why_a_bmc_cannot_be_used_is_said():
    refused = decide(silent(power="unknown", power_sentence="the BMC refuses the user admin")).refusal
    assert "the BMC refuses the user admin" in refused
    assert "the BMC refuses the user admin" in " ".join(
        decide(answers(LOST, power="unknown", power_sentence="the BMC refuses the user admin")).reasons
    )


def test_a_decision_names_whose_work_its_way_ends() -> None:
    """A rebuild was announced without them, and with --force nobody was named at all."""
    people, hit = (
        ("workspace alice-lab of alice (2 processes)", "workspace bob-box of bob"),
        ("workspace bob-box of bob",),
    )
    found = replace(answers(finding("gpu-lost", "card at 0000:3b:00: GPU has fallen off the bus")), running=people)
    found = replace(found, disturbed=hit, can_reinstall="command")
    assert (decide(found).way, decide(found).ends) == ("power cycle", people)
    assert decide(found, "relayer").ends == decide(found, "reinstall").ends == people
    assert decide(found, "repair").ends == hit
    assert decide(replace(answers(), running=people, disturbed=hit)).ends == ()  # nothing differs


def test_a_full_disk_is_cleaned_first():
    decision = decide(answers(plan=FULL_DISK))
    assert decision.clean and CLEAN in decision.steps and not decision.refusal
    assert not decide(answers(differs=("cuda",))).clean
    other = plan("base", refusal="too little disk", what="free disk")
    misfit = replace(other, roles=(*other.roles, *plan("driver", refusal="kernel 6.8 does not fit").roles))
    assert decide(answers(plan=misfit)).refusal == "kernel 6.8 does not fit"


def test_the_failures_behind_a_way_stand_in_its_record():
    assert decide(answers(LOST)).rules == ("power-cycle", "gpu-lost")
    assert decide(answers(xid(95, 48))).rules == ("reboot", "xid-95", "xid-48")


def test_the_host_does_not_choose_its_xids():
    lying = finding("xid-fatal", "Xid 95 on card 0, once: it failed; Xid 54 on card 1", "a program said Xid 54 on it")
    assert decide(answers(lying)).rules == ("reboot", "xid-95")


def test_people_are_told_beside_what_can_be_mended():
    reasons = decide(answers(finding("docker-masked"), differs=("cuda",))).reasons
    assert any("unmask" in reason for reason in reasons)


class TestEscalation:
    def test_a_silent_host_is_reinstalled_where_that_is_configured(self):
        assert decide(silent(can_reinstall="redfish")).escalation == ("reinstall",)
        assert decide(silent()).escalation == ()
        assert decide(silent(power="off", can_reinstall="command")).escalation == ("power cycle", "reinstall")

    def test_a_host_that_answers_is_never_reinstalled_by_itself(self):
        for diagnosis in (answers(differs=("cuda",)), answers(LOST), answers(finding("driver-versions-mixed"))):
            assert "reinstall" not in decide(replace(diagnosis, can_reinstall="redfish")).escalation

    def test_repair_is_followed_by_relayer_once(self):
        assert decide(answers(differs=("cuda",))).escalation == ("relayer",)
        assert decide(answers(differs=("cuda",), tried=("repair",))).escalation == ()

    def test_what_was_not_announced_is_not_reinstalled(self):
        first = decide(answers(LOST, can_reinstall="redfish"))
        after = silent(tried=("power cycle",), can_reinstall="redfish")
        assert decide(after).way == "reinstall"
        again = decide_again(first, after)
        assert again.way == "hand over" and "--from reinstall" in again.refusal
        announced = decide(silent(can_reinstall="redfish"))
        assert decide_again(announced, after).way == "reinstall"
        assert decide_again(first, after, "reinstall").way == "reinstall"


class TestStart:
    @pytest.mark.parametrize("start", ["repair", "relayer", "reinstall"])
    @pytest.mark.parametrize("diagnosis", [answers(), answers(differs=("cuda",)), answers(LOST, history=TWICE)])
    def test_overrides(self, start: Way, diagnosis: Diagnosis):
        assert decide(replace(diagnosis, can_reinstall="redfish"), start).way == start

    def test_broken_hardware_is_still_said(self):
        decision = decide(answers(finding("row-remap-failed")), "repair")
        assert decision.way == "repair"
        assert any("its hardware is broken" in reason for reason in decision.reasons)
        assert "row-remap-failed" in decision.rules
        assert any("hand over" in reason for reason in decision.reasons)

    @pytest.mark.parametrize(
        ("diagnosis", "way"),
        [
            (silent(can_reinstall=""), "nothing"),
            (answers(power=None, can_reinstall="redfish"), "nothing"),
            (silent(power="unknown", power_sentence="401", can_reinstall="redfish"), "hand over"),
        ],
    )
    def test_a_reinstall_that_cannot_be_is_refused(self, diagnosis: Diagnosis, way: Way):
        decision = decide(diagnosis, "reinstall")
        assert decision.refusal and decision.way == way

    def test_a_site_s_own_command_needs_no_bmc(self):
        assert decide(silent(power=None, can_reinstall="command"), "reinstall").way == "reinstall"

    @pytest.mark.parametrize(
        ("diagnosis", "way"),
        [
            (silent(), "power cycle"),
            (silent(power="off"), "power on"),
            (Diagnosis("gpu07", "key changed", "another key"), "trust"),
        ],
    )
    def test_a_host_is_woken_or_trusted_first(self, diagnosis: Diagnosis, way: Way):
        decision = decide(diagnosis, "relayer")
        assert decision.way == way and not decision.refusal
        assert any("relayer" in reason for reason in decision.reasons)
        awake = answers(differs=("cuda",), tried=(way,))
        assert decide_again(decision, awake, "relayer").way == "relayer"

    def test_is_done_once(self):
        assert decide(answers(tried=("repair",)), "repair").way == "nothing"

    def test_a_stack_that_does_not_fit_is_refused(self):
        misfit = answers(plan=plan("driver", refusal="kernel 6.8 does not fit"), can_reinstall="redfish")
        assert decide(misfit, "relayer").refusal == "kernel 6.8 does not fit"
        assert decide(misfit, "reinstall").way == "reinstall"

    def test_what_is_no_start_is_refused(self):
        decision = decide(answers(), "hand over")
        assert decision.way == "nothing" and "--from" in decision.refusal


@pytest.mark.parametrize("begun", [answers(differs=("cuda",)), silent(), answers(LOST)])
@pytest.mark.parametrize("tried", ["repair", "relayer", "nothing"])
def test_a_host_that_falls_silent_over_its_work_is_left_to_it(begun: Diagnosis, tried: Way):
    """It is the connection that was lost; what runs there would be cut in the middle."""
    first = decide(replace(begun, can_reinstall="redfish"))
    now = decide_again(first, silent(can_reinstall="redfish", tried=(*([first.way]), tried)))
    assert (now.way, now.rules) == ("nothing", ("lost",))
    assert "run the same command again" in now.refusal


def test_power_that_was_not_announced_is_not_cut():
    first = decide(answers(differs=("cuda",)))
    now = decide_again(first, answers(LOST, tried=("repair",)))
    assert now.way == "nothing"
    assert "it now needs a power cycle" in now.refusal
    assert decide_again(decide(answers(LOST)), answers(LOST, tried=("power cycle", "repair"))).way == "power cycle"


@pytest.mark.parametrize("reach", ["answers", "key changed", "no root", "unreadable", "refused login"])
def test_the_bmc_of_another_host_does_not_install_it(reach):
    """Something answers at the host's address, and the BMC says that it is off: its power is another's."""
    diagnosis = answers(power="off", reach=reach, can_reinstall="redfish")
    assert not diagnosis.usable_bmc
    assert decide(diagnosis, "reinstall").refusal


def test_an_order_that_the_bmc_refused_was_no_power_cycle():
    refused = (rebuild("power cycle", outcome="failed", rules=("gpu-lost",), phases={"power": 0.1}),) * 3
    assert decide(answers(LOST, history=refused)).way == "power cycle"


def test_host_lost_in_a_reboot_is_power_cycled():
    first = decide(answers(plan=plan("driver", reboot="nouveau is loaded")))
    assert HUNG in first.steps
    assert HUNG not in decide(answers(plan=plan("driver", reboot="nouveau is loaded"), power=None)).steps
    assert HUNG not in decide(answers(differs=("cuda",))).steps
    assert decide_again(first, silent(tried=("repair",)), went_down=True).way == "power cycle"
    assert decide_again(first, silent(tried=("repair",))).way == "nothing"
