"""Tests that the record of the last good run distinguishes drift and intent, state by state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.fleetaudit import WORST_FIRST, worst
from hostwright.audit.judging.judging import last_good, shown
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.newrelease import renewed
from hostwright.plan.host.release import RunStamp
from hostwright.resources.files.files import File, Link
from tests.places import INVENTORY
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9", [INVENTORY / "stacks"])
LINK, FILE = Link("/usr/local/cuda", "/usr/local/cuda-11.2"), File("/etc/motd", "hello\n")
OTHER = File("/etc/motd", "good morning\n")
ROLE = DesiredRole("cuda", (), (LINK, FILE))
RECORD = renewed(Desired("gpu01", STACK, (ROLE,)), {}, RunStamp("run-1", "ada@desk", "2026-11-20T08:00:00Z"))
assert RECORD is not None


def test_a_state_that_was_as_desired_has_drifted():
    assert last_good(ROLE, RECORD).why(LINK) == "drift"


def test_changed_state_is_intent_and_its_neighbour_stays_drift():
    changed = last_good(DesiredRole("cuda", (), (LINK, OTHER)), RECORD)
    assert (changed.why(OTHER), changed.why(LINK)) == ("intent", "drift")


def test_a_role_that_the_record_does_not_know_is_new():
    assert last_good(DesiredRole("cudnn", (), (FILE,)), RECORD).why(FILE) == "new"
    assert last_good(ROLE, {}).why(LINK) == "new"


def test_a_record_of_before_states_were_kept_tells_whole_roles_apart():
    entry = {key: value for key, value in RECORD["roles"]["cuda"].items() if key != "states"}
    old = {**RECORD, "roles": {"cuda": entry}}
    assert last_good(ROLE, old).why(LINK) == "drift"
    assert last_good(DesiredRole("cuda", (), (LINK, OTHER)), old).why(LINK) == "intent"


@pytest.mark.parametrize("entry", ["text", 3, None, ["list"]])
def test_an_entry_that_is_none_counts_as_none(entry):
    assert last_good(ROLE, {"roles": {"cuda": entry}}).why(LINK) == "new"


@pytest.mark.parametrize("states", [None, "text", 7, [1, None], {}])
def test_states_that_a_host_made_up_never_raise(states):
    lying = {"roles": {"cuda": {"desired": "x", "states": states}}}
    assert last_good(ROLE, lying).why(LINK) == "intent"


def test_a_value_without_a_state_follows_its_role():
    assert last_good(ROLE, RECORD).why() == "drift"
    assert last_good(DesiredRole("cuda", (), (OTHER,)), RECORD).why() == "intent"


def test_the_head_of_the_record_is_shown():
    head = shown(RECORD)
    assert head is not None
    assert (head.stack, head.run, head.operator) == ("tensorflow-2.9", "run-1", "ada@desk")
    assert shown({}) is None


@given(st.lists(st.sampled_from(WORST_FIRST)))
def test_host_status_is_its_worst_layers(statuses):
    found = worst(statuses)
    without = [status for status in statuses if status != "warning"]
    assert found == (min(without, key=WORST_FIRST.index) if without else "desired")
