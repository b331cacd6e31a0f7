"""Every layer can be taken away: whatever a host answers, its removal is planned and nothing is raised."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.plan.model import Answer, Facts, Probe, Resource
from hostwright.plan.planning import make_plan, removal_of
from hostwright.plan.roles.role import RoleContext, discover
from hostwright.plan.roles.wants import desire
from hostwright.standard.roles.cuda import Cuda
from tests.unit.support.stacks import for_all_roles

STACK = for_all_roles()
DESIRED = desire("gpu01", RoleContext(STACK), [(role, role.variables()) for role in discover()])
ODD = [
    one
    for role, variables in (("cuda", Cuda(keep_repository=False)),)
    for found in discover()
    if found.name == role
    for one in found.resources(variables, RoleContext(STACK))
]
RESOURCES = [*(one for role in DESIRED.roles for one in role.resources), *ODD]
REMOVED = [state for one in RESOURCES for state in one.removal()]

#: what a host may say: nothing, anything, and rows that look a little like those that are read
LINES = st.sampled_from(
    ["", "written", "record\nthere", "a\t1\tii ", "a\tb\tc\td", "Key=value", "ActiveState=active", "{", '{"a": {}}',
     "0", "user nvidia-persistenced", "/etc/apt/sources.list:# disabled by hostwright: x", "link x", "mark=", "=",
     "1 - 1 a"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=40), st.lists(LINES, max_size=4).map("\n".join))
ANSWERS = st.builds(Answer, status=st.integers(0, 127), text=TEXTS, truncated=st.booleans())


def test_all_removal_states_are_resources_that_need_no_removal_themselves() -> None:
    assert all(isinstance(state, Resource) for state in REMOVED)
    assert {type(state).__name__ for state in REMOVED if state.removal() not in {(), (state,)}} <= {
        "RestartedAfter",
        "ReloadedAfter",
        "Disturbing",
    }
    hash(tuple(REMOVED))


@settings(max_examples=150, deadline=None)
@given(default=ANSWERS, some=st.lists(ANSWERS, min_size=1, max_size=5), pick=st.randoms(use_true_random=False))
def test_no_answer_makes_a_removal_raise(default: Answer, some: list[Answer], pick: object) -> None:
    choose: Callable[[list[Answer]], Answer] = pick.choice  # type: ignore[attr-defined]
    probes: list[Probe] = [probe for state in REMOVED for probe in state.probes()]
    facts = Facts({probe: choose([default, *some]) for probe in probes})
    for state in REMOVED:
        change = state.plan(facts)
        assert change is None or change.what


def test_a_host_that_has_nothing_of_ours_has_nothing_to_remove() -> None:
    removal = removal_of(DESIRED)
    facts = Facts(dict.fromkeys(removal.probes(), Answer(1, "")))
    assert make_plan(removal, facts).changes == ()


@pytest.mark.parametrize("role", [role.name for role in discover()])
def test_each_role_names_something_that_goes(role: str) -> None:
    said = {"registry": {"at": "reg01:5000", "serve": True}}  # without variables it wants nothing of a host
    roles = [(each, each.variables(**said.get(each.name, {}))) for each in discover()]
    (found,) = (one for one in removal_of(desire("a", RoleContext(STACK), roles)).roles if one.name == role)
    assert found.resources
