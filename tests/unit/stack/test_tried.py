"""Records of tests of stacks: those of the standard stacks, and how records are counted and merged."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from hostwright.common.errors import InputError
from hostwright.plan.model import Refusal
from hostwright.plan.roles.role import discover
from hostwright.stack.stackfile import stack_names
from hostwright.stack.tried import TRIED_FILE, Trial, by_release, cells, read_trials, trials_text
from tests.places import PROJECT
from tests.unit.support.planned import plan_of, planned_trials, releases
from tests.unit.support.stacks import STACKS, load_stack, with_values
from tests.unit.support.standard import targets

FILE = STACKS / TRIED_FILE
STACK = load_stack("tensorflow-2.9")
TARGETS = [one for one in targets() if one.name == one.stack.name]
ROWS = [(target, *release) for target in TARGETS for release in releases(target)]
#: rejected for a host with a current kernel
TOO_NEW = {("debian-13-r550", "debian", "13"): {"driver-kernel"}}


def trial(**values: object) -> Trial:
    common = {"stack": STACK.name, "versions": STACK.versions(), "distribution": "debian", "release": "11"}
    return Trial.model_validate({**common, "roles": ("base", "cuda"), "verbs": ("verify",), **values})


# --- records of the standard stacks


def test_the_records_name_stacks_roles_releases_artifacts_and_tests_that_exist() -> None:
    names = [name for name in stack_names([STACKS]) if not name.startswith("lab")]
    roles = {role.name for role in discover()}
    for one in read_trials(FILE):
        assert one.stack in names
        stack = load_stack(one.stack)
        assert one.release in stack.distributions[one.distribution]
        assert set(one.roles) <= roles
        assert set(one.versions) == set(stack.versions())
        # a stand-in with a label is one of the lab's own artifacts
        assert {name for name in one.stand_ins if " (" not in name} <= set(stack.artifacts)
        assert one.roles
        assert one.verbs
        assert one.tests
        assert [test for test in one.tests if not (PROJECT / test).is_file()] == []


def test_the_file_is_as_the_recorder_writes_it() -> None:
    assert FILE.read_text() == trials_text(read_trials(FILE))


def test_hosts_of_the_lab_have_stand_ins_and_facts_have_none() -> None:
    trials = read_trials(FILE)
    assert {one.host for one in trials} == {"lab", "facts"}
    assert all(bool(one.stand_ins) == (one.host == "lab") for one in trials)
    assert {one.verbs for one in trials if one.host == "facts"} == {("plan",)}


@pytest.mark.parametrize(("target", "distribution", "release"), ROWS, ids=[f"{m.name}-{d}-{r}" for m, d, r in ROWS])
def test_every_stack_has_a_plan_for_every_release_that_it_is_for(target, distribution, release) -> None:
    plan = plan_of(target, distribution, release)
    refused = {one.rule for one in plan.changes if isinstance(one, Refusal)}
    assert refused == TOO_NEW.get((target.name, distribution, release), set())
    assert {role.role for role in plan.roles} >= set(target.stack.roles)


def test_these_plans_are_recorded_as_plans() -> None:
    recorded = {one.key for one in read_trials(FILE) if one.host == "facts"}
    assert recorded == {one.key for one in planned_trials()}, "python -m tests.unit.support.stackfleet"


# --- counting and merging


def test_a_cell_is_tried_planned_or_neither() -> None:
    trials = [trial(), trial(release="22.04", distribution="ubuntu", host="facts", verbs=("plan",))]
    found = {(cell.release, cell.role): cell.state for cell in cells(STACK, trials)}
    assert len(found) == 3 * len(STACK.roles)
    assert (found["11", "cuda"], found["22.04", "cuda"], found["20.04", "cuda"]) == ("tried", "planned", "not tried")
    assert (found["11", "base"], found["11", "driver"]) == ("tried", "not tried")


def test_a_plan_on_a_host_is_a_plan() -> None:
    assert trial(verbs=("plan",)).state == "planned"


def test_what_was_tried_comes_before_what_was_planned() -> None:
    both = [trial(host="facts", verbs=("plan",)), trial()]
    (cell,) = (cell for cell in cells(STACK, both) if (cell.release, cell.role) == ("11", "base"))
    assert [one.state for one in cell.trials] == ["tried", "planned"]


def test_a_record_of_other_versions_or_another_stack_does_not_count() -> None:
    newer = with_values(STACK, driver={"version": "470.239.06"})
    assert {cell.state for cell in cells(newer, [trial(), trial(stack="other")])} == {"not tried"}


def test_optional_role_shows_where_it_was_tried() -> None:
    found = cells(STACK, [trial(roles=("base", "selfaudit"))])
    assert {cell.role for cell in found} == {*STACK.roles, "selfaudit"}
    assert [len(row) for row in by_release(found)] == [len(STACK.roles) + 1] * 3


def test_records_of_the_same_are_merged_and_the_last_day_counts() -> None:
    text = trials_text(
        [trial(date=date(2026, 1, 2), tests=("b",)), trial(verbs=("plan",), date=date(2026, 1, 1), tests=("a",))]
    )
    assert text.count("\n") == 3
    assert '"verbs": ["plan", "verify"]' in text
    assert '"tests": ["a", "b"], "date": "2026-01-02"' in text


def test_roles_in_another_order_are_the_same_record() -> None:
    assert trials_text([trial(roles=("cuda", "base")), trial()]).count('"roles"') == 1


def test_a_record_that_another_covers_is_left_out() -> None:
    text = trials_text([trial(roles=("cuda",)), trial(verbs=("plan", "verify")), trial(roles=("cudnn",))])
    assert text.count('"roles"') == 2
    assert '"roles": ["cuda"]' not in text


def test_record_of_new_versions_replaces_the_old(tmp_path: Path) -> None:
    (tmp_path / TRIED_FILE).write_text(trials_text([trial(versions={"cuda": "11.0"}), trial(verbs=("plan",))]))
    (left,) = read_trials(tmp_path / TRIED_FILE)
    assert (left.versions, left.verbs) == (STACK.versions(), ("plan",))


def test_no_file_is_no_record_and_a_wrong_one_an_error(tmp_path: Path) -> None:
    assert read_trials(tmp_path / TRIED_FILE) == ()
    (tmp_path / TRIED_FILE).write_text('[{"stack": 1}]')
    with pytest.raises(InputError, match=r"tried\.json: the records of stack tests cannot be read"):
        read_trials(tmp_path / TRIED_FILE)
