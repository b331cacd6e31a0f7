"""Plans are values: equal, JSON there and back, and honest about reboots and refusals."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.model import Answer, Change, Facts, Plan, Probe, RolePlan, Step

TEXT = st.text(max_size=30)
STEPS = st.builds(Step, script=TEXT, lock=st.sampled_from(["", "dpkg"]), timeout_s=st.floats(1, 1e5))
CHANGES = st.builds(
    Change,
    what=TEXT,
    have=TEXT,
    want=TEXT,
    steps=st.lists(STEPS, max_size=3).map(tuple),
    diff=TEXT,
    artifacts=st.lists(st.text(string.ascii_lowercase), max_size=2).map(tuple),
    reboot=TEXT,
    known_after=TEXT,
    opaque=st.booleans(),
    refusal=TEXT,
)
ROLES = st.builds(
    RolePlan, role=TEXT, needs=st.lists(TEXT, max_size=2).map(tuple), changes=st.lists(CHANGES, max_size=3).map(tuple)
)
PLANS = st.builds(Plan, host=TEXT, stack=TEXT, roles=st.lists(ROLES, max_size=3).map(tuple))


@given(PLANS)
def test_a_plan_survives_json(plan):
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_plan_gathers_reboots_once_and_refusals():
    change = Change("module", "460", "470", reboot="module 460 is loaded")
    refused = Change("gpu", "busy", "idle", refusal="a process uses the GPU")
    plan = Plan("gpu01", "s", (RolePlan("base", (), (change,)), RolePlan("driver", ("base",), (change, refused))))
    assert plan.reboot == "module 460 is loaded"
    assert plan.refusals == ("a process uses the GPU",)
    assert not plan.empty
    assert Plan("gpu01", "s").empty


def test_a_question_that_was_not_asked_is_a_mistake_of_the_program():
    facts = Facts({Probe("a"): Answer(0, "")})
    with pytest.raises(KeyError):
        facts[Probe("a", root=True)]
