"""Tests of plans as values: equality, JSON round trip, reboots and refusals."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.model import (
    Answer,
    Change,
    Deferred,
    Facts,
    Plan,
    Probe,
    Reboot,
    Refusal,
    RolePlan,
    Step,
)
from hostwright.resources.packages.packages import DpkgInOrder

TEXT = st.text(max_size=30)
STEPS = st.builds(Step, script=TEXT, lock=st.sampled_from(["", "dpkg"]), timeout_s=st.floats(1, 1e5))
FILES = st.lists(st.text(string.ascii_lowercase), max_size=2).map(tuple)
DIFFERS = {"what": TEXT, "have": TEXT, "want": TEXT}
PLANNED = st.one_of(
    st.builds(
        Change,
        **DIFFERS,
        steps=st.lists(STEPS, min_size=1, max_size=3).map(tuple),
        diff=TEXT,
        artifacts=FILES,
        disturbs=TEXT,
    ),
    st.builds(Reboot, **DIFFERS, reason=TEXT),
    st.builds(Deferred, **DIFFERS, until=TEXT, artifacts=FILES),
    st.builds(Refusal, **DIFFERS, rule=TEXT, sentence=TEXT),
)
ROLES = st.builds(
    RolePlan, role=TEXT, needs=st.lists(TEXT, max_size=2).map(tuple), changes=st.lists(PLANNED, max_size=3).map(tuple)
)
PLANS = st.builds(Plan, host=TEXT, stack=TEXT, roles=st.lists(ROLES, max_size=3).map(tuple))


@given(PLANS)
def test_a_plan_survives_json(plan):
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_plan_that_an_earlier_hostwright_saved_is_read_without_what_left_its_changes():
    plan = Plan("gpu01", "s", (RolePlan("driver", (), (Change("driver", "460", "470", (Step("true"),)),)),))
    saved = json.loads(json.dumps(plan.to_json()))
    saved["roles"][0]["changes"][0] |= {"opaque": False, "final": "the driver 460"}
    assert Plan.from_json(saved) == plan


def test_a_plan_gathers_reboots_once_and_refusals():
    reboot = Reboot("module", "460", "470", "module 460 is loaded")
    refused = Refusal("gpu", "busy", "idle", "gpu-in-use", "a process uses the GPU")
    plan = Plan("gpu01", "s", (RolePlan("base", (), (reboot,)), RolePlan("driver", ("base",), (reboot, refused))))
    assert plan.reboot == "module 460 is loaded"
    assert plan.refusals == ("a process uses the GPU",)
    assert not plan.empty
    assert Plan("gpu01", "s").empty


def test_a_plan_without_its_reboots_says_nothing_of_them():
    reboot, change = Reboot("module", "460", "470", "460 is loaded"), Change("file", "a", "b", (Step("true"),))
    plan = Plan("gpu01", "s", (RolePlan("base", (), (change, reboot)),))
    assert plan.disturbs == "reboots the host"
    left = plan.without_reboots()
    assert (left.changes, left.disturbs) == ((change,), "")


def test_a_change_has_something_to_run():
    with pytest.raises(ValueError, match="the change driver has no steps"):
        Change("driver", "absent", "470", ())


def test_the_files_that_a_plan_takes_are_known_before_they_are_needed():
    change = Change("driver", "absent", "470", (Step("true"),), artifacts=("driver", "key"))
    later = Deferred("cuda", "absent", "11.2", "reboot", ("key", "cuda"))
    plan = Plan("gpu01", "s", (RolePlan("driver", (), (change,)), RolePlan("cuda", (), (later,))))
    assert plan.artifacts == ("driver", "key", "cuda")


@pytest.mark.parametrize(
    "differs",
    [
        {"kind": "change", "steps": []},
        {"kind": "change", "steps": [{"script": 1}]},
        {"kind": "reboot"},
        {"kind": "guess"},
        # of an earlier version
        {"steps": [], "diff": "", "artifacts": [], "reboot": "", "known_after": "reboot", "refusal": ""},
    ],
)
def test_what_is_none_of_the_four_kinds_is_no_plan(differs):
    change = {"what": "driver", "have": "absent", "want": "470", **differs}
    with pytest.raises(ValueError):
        Plan.from_json({"host": "a", "stack": "s", "roles": [{"role": "driver", "needs": [], "changes": [change]}]})


def test_a_state_without_users_has_none():
    assert DpkgInOrder().users(Facts({})) == ()


def test_a_question_that_was_not_asked_is_a_mistake_of_the_program():
    facts = Facts({Probe("a"): Answer(0, "")})
    with pytest.raises(KeyError):
        facts[Probe("a", root=True)]
