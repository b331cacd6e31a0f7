"""Failures carry what a rebuild does about them, and none that needs it is left out."""

from __future__ import annotations

import pytest

from hostwright.audit.failures import Hardware
from hostwright.plan.model import Plan, Refusal, RolePlan
from hostwright.rebuild.ways import hardware
from hostwright.resources.system.room import FreeSpace
from hostwright.stack.stack import Share
from hostwright.standard.roles.driver.failures.cards.xids import OTHERWISE, REPLACE_TOGETHER, by_number
from hostwright.standard.roles.driver.failures.cards.xids import TREATMENTS as BY_ACTION
from hostwright.standard.roles.driver.xids.catalog import CATALOG, Action, Concern
from tests.unit.support.facts import changes_of
from tests.unit.support.known import BY_NAME, SIGNED, TREATMENTS
from tests.unit.support.rebuilds import answers, xid

HARDWARE = {name: one for name, one in TREATMENTS.items() if isinstance(one, Hardware)}


def test_every_treatment_is_that_of_a_failure_that_is_recognised():
    assert set(TREATMENTS) <= {rule.name for rule in SIGNED}
    for one in HARDWARE.values():
        assert set(one.explains) <= {*HARDWARE}
        assert not one.layer or one.layer == BY_NAME["no-device"].sign.layer
    assert set(HARDWARE["gpu-lost"].explains) == {"no-gpu", "gpus-fewer"}


def test_every_grave_failure_that_provision_does_not_mend_has_its_treatment():
    wanted = {rule.name for rule in SIGNED if rule.sign and rule.sign.grave and not rule.sign.provision}
    assert wanted - set(TREATMENTS) == set()


def test_fatal_card_failures_count_as_hardware():
    grave = {rule.name for rule in SIGNED if rule.sign and rule.sign.layer == "gpu" and rule.sign.grave}
    assert grave - set(HARDWARE) == {"fabric-not-joined", "mig-without-instances"}  # states that software leaves


def test_every_hardware_cure_names_its_source():
    for cure in (*HARDWARE.values(), *BY_ACTION.values(), OTHERWISE):
        assert cure.source
        assert cure.way in ("power cycle", "hand over")
        assert (cure.way == "hand over") == (cure.tries == 0)


@pytest.mark.parametrize("number", sorted(number for number, one in CATALOG.items() if one.concern is Concern.NODE))
def test_every_xid_that_fails_a_host_has_its_cure(number: int):
    (failure,) = hardware.broken(answers(xid(number)))
    assert failure.key == f"xid-{number}"
    by_hand = CATALOG[number].action is Action.CHECK_MECHANICALS
    assert failure.cure.way == ("hand over" if by_hand else "power cycle")
    assert failure.cure.gently == (CATALOG[number].action not in BY_ACTION)


def test_the_pair_that_means_a_broken_card_is_in_the_catalog():
    assert set(CATALOG) >= REPLACE_TOGETHER


def test_room_on_the_disk_is_told_by_the_rule_of_its_resource():
    room = FreeSpace(10**9, (Share("CUDA", "/usr/local/cuda/bin/nvcc", "/usr", 100),))
    full = "/usr\t/usr\tdirectory\t8:1\t/\trw,relatime\t0\t0\t0\n"
    (change,) = changes_of([room], {"findmnt": full})
    assert isinstance(change, Refusal)
    diagnosis = answers(plan=Plan("gpu07", "tensorflow-2.9", (RolePlan("base", (), (change,)),)))
    assert (diagnosis.no_room, diagnosis.refusals) == ((change.sentence,), ())


@pytest.mark.parametrize(
    ("number", "asked", "gently"),
    [
        (119, "GPU reset", True),
        (79, "node reboot", True),  # the catalog alone says RESTART_BM: a power cycle
        (119, "system reboot", False),
        (154, "node reboot", True),
    ],
)
def test_what_the_driver_asks_for_decides_the_way(number: int, asked: str, gently: bool):
    (case,) = by_number((f"Xid {number} (154: {asked}) on card 0 (0000:3b:00), once: its meaning",))
    assert (case.name, case.treatment.way, case.treatment.gently) == (f"xid-{number}", "power cycle", gently)


def test_what_wants_people_stays_theirs_whatever_the_driver_asks_for():
    (cables,) = by_number(("Xid 54 (154: GPU reset) on card 0 (0000:3b:00), once: its meaning",))
    assert cables.treatment.way == "hand over"
    pair = by_number(tuple(f"Xid {one} (154: GPU reset) on card 0 (0000:3b:00), once" for one in (48, 64)))
    assert {case.treatment.way for case in pair} == {"hand over"}


def test_words_of_the_host_behind_an_xid_decide_nothing():
    (case,) = by_number(("Xid 79 on card 0 (0000:3b:00), once: its meaning; Xid 62 (154: node reboot) on card 0",))
    assert (case.name, case.treatment) == ("xid-79", BY_ACTION[Action.RESTART_BM])


@pytest.mark.parametrize(("words", "gently"), [("Reset", True), ("Node Reboot", True), ("System Reboot", False)])
def test_a_card_that_asks_for_the_whole_system_gets_a_power_cycle(words: str, gently: bool):
    rule = HARDWARE["gpu-needs-reset"]
    assert rule.cases is not None
    cases = tuple(rule.cases((f"card 0 (0000:3b:00): recovery action {words}",)))
    assert [case.treatment.gently for case in cases] == ([] if gently else [False])
