"""The tables of cures name failures that there are, and leave none out."""

from __future__ import annotations

import pytest
from hostwright.hardware.xid_catalog import CATALOG, Action, Concern

from hostwright.audit.failures import SIGNED
from hostwright.plan.model import Plan, Refusal, RolePlan
from hostwright.rebuild.ways import hardware
from hostwright.rebuild.ways.cures import (
    FULL,
    HARDWARE,
    HELD,
    NEARLY_FULL,
    PEOPLE,
    REPLACE_TOGETHER,
    STUCK,
    TANGLED,
    XID_CURES,
    XID_ELSE,
)
from hostwright.resources.system.room import Room
from hostwright.stack.stack import Share
from tests.unit.support.facts import changes_of
from tests.unit.support.rebuilds import RULES, answers, xid

TABLES = (set(HARDWARE), set(TANGLED), set(STUCK), set(PEOPLE), set(HELD), {FULL, NEARLY_FULL})


def test_every_name_is_one_of_a_failure_that_is_recognised_and_stands_once():
    names = [name for table in TABLES for name in table]
    assert set(names) <= set(RULES)
    assert len(set(names)) == len(names)
    assert {hardware.XID_RULE, hardware.LOST_RULE, hardware.NONE_RULE} <= set(HARDWARE)


def test_every_grave_failure_that_provision_does_not_mend_has_its_cure():
    wanted = {rule.name for rule in SIGNED if rule.sign and rule.sign.grave and not rule.sign.provision}
    assert wanted - set().union(*TABLES) == set()


def test_every_failure_of_the_cards_that_stops_work_counts_as_hardware_but_for_settings():
    grave = {rule.name for rule in SIGNED if rule.sign and rule.sign.layer == "gpu" and rule.sign.grave}
    assert grave - set(HARDWARE) == {"mig-without-instances"}


def test_every_cure_says_where_it_comes_from_and_is_a_way_of_hardware():
    for cure in (*HARDWARE.values(), *XID_CURES.values(), XID_ELSE):
        assert cure.source
        assert cure.way in ("power cycle", "hand over")
        assert (cure.way == "hand over") == (cure.tries == 0)


@pytest.mark.parametrize("number", sorted(number for number, one in CATALOG.items() if one.concern is Concern.NODE))
def test_every_xid_that_fails_a_host_has_its_cure(number: int):
    (found,) = hardware.broken(answers(xid(number)))
    assert found.key == f"xid-{number}"
    by_hand = CATALOG[number].action is Action.CHECK_MECHANICALS
    assert found.cure.way == ("hand over" if by_hand else "power cycle")
    assert found.cure.gently == (CATALOG[number].action not in XID_CURES)


def test_the_pair_that_means_a_broken_card_is_in_the_catalog():
    assert set(CATALOG) >= REPLACE_TOGETHER


def test_room_on_the_disk_is_told_by_the_rule_of_its_resource():
    room = Room(10**9, (Share("CUDA", "/usr/local/cuda/bin/nvcc", "/usr", 100),))
    full = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 1 1 0 100% /\n"
    (change,) = changes_of([room], {"df -Pk": full, "for p in": ""})
    assert isinstance(change, Refusal)
    found = answers(plan=Plan("gpu07", "tensorflow-2.9", (RolePlan("base", (), (change,)),)))
    assert (found.no_room, found.refusals) == ((change.sentence,), ())
