"""Layers taken away: the order, the record that is left, and what Hostwright itself kept on the host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostwright import departure, release
from hostwright.planning import PREFLIGHT, Desired, DesiredRole, make_plan, removal_of
from hostwright.release import reduced
from tests.unit.test_planning import LAYERS, OS_RELEASE, Named, facts


def test_a_removal_goes_backwards_each_role_before_those_that_it_needs():
    gone = removal_of(LAYERS)
    assert gone.removes
    assert [(role.name, role.needs) for role in gone.roles] == [
        ("cudnn", ()),
        ("cuda", ("cudnn",)),
        ("base", ("cuda", "cudnn")),
    ]


def test_a_roles_states_go_backwards_and_equal_ones_go_once():
    states = (Named("a"), Named("b"), Named("a"))
    gone = removal_of(Desired("gpu01", LAYERS.stack, (DesiredRole("r", (), states),)))
    assert [role.resources for role in gone.roles] == [(Named("no-a"), Named("no-b"))]


def test_what_an_upgrade_left_beside_goes_as_well():
    before = Desired("gpu01", LAYERS.stack, (DesiredRole("cuda", (), (Named("11.1"), Named("cuda"))),))
    gone = {role.name: role.resources for role in removal_of(LAYERS, [before]).roles}
    assert gone == {
        "cudnn": (Named("no-cudnn"),),
        "cuda": (Named("no-cuda"), Named("no-11.1")),
        "base": (Named("no-base"),),
    }


def test_no_rule_of_what_fits_keeps_a_layer_from_going():
    """A host on which the stack does not fit any more (a distribution upgrade) can be cleaned all the same."""
    gone = removal_of(LAYERS)
    misfit = facts(gone, {"no-cudnn"}, {OS_RELEASE: "ID=plan9\nVERSION_ID=4\n"})
    assert [role.role for role in make_plan(gone, misfit).roles] == ["cudnn"]
    bare = facts(LAYERS, {"cudnn"}, {OS_RELEASE: "ID=plan9\nVERSION_ID=4\n"})
    assert make_plan(LAYERS, bare).roles[0].role == PREFLIGHT, "it would be refused the other way round"


RECORD = {"schema": 1, "stack": "s", "roles": {"cuda": {"desired": "a"}, "cudnn": {"desired": "b"}}, "desired": "x"}


@pytest.mark.parametrize(
    ("before", "gone", "left"),
    [
        (RECORD, ["cudnn"], ["cuda"]),
        (RECORD, ["cudnn", "cuda", "base"], []),
        (RECORD, ["container"], None),
        ({}, ["cuda"], None),
    ],
)
def test_the_record_names_what_is_left(before, gone, left):
    after = reduced(before, gone)
    if left is None:
        assert after is None
    elif not left:
        assert after == {}
    else:
        assert after is not None
        assert list(after["roles"]) == left
        assert after["desired"] != before["desired"]


def test_a_role_whose_record_says_nonsense_is_no_error():
    assert reduced({**RECORD, "roles": {"cuda": {"desired": "a"}, "odd": 7}}, ["cuda"]) is not None


def test_what_hostwright_kept_goes_and_what_belongs_to_others_stays(tmp_path: Path):
    state, cache, opt = tmp_path / "var/lib/hostwright", tmp_path / "var/cache/hostwright", tmp_path / "opt/hostwright"
    for path in ("jobs/1/log", "origin/packages", "unpacked/cudnn", "release.json", "set-aside/usr/lib/x/.keep"):
        (state / path).parent.mkdir(parents=True, exist_ok=True)
        (state / path).touch()
    (state / "lock.json").write_text("{}")
    (state / "set-aside" / "etc" / "empty").mkdir(parents=True)
    (cache / "artifacts").mkdir(parents=True)
    (cache / "artifacts" / "driver.run").touch()
    (opt / "venvs").mkdir(parents=True)
    script = departure.SCRIPT
    for place in ("/var/lib/hostwright", "/var/cache/hostwright", "/opt/hostwright", "/usr/local/lib/hostwright"):
        script = script.replace(place, f"{tmp_path}{place}")
    for _ in range(2):  # safe to be cut and run again
        subprocess.run(["/bin/sh"], input=script.encode(), check=True)
        left = sorted(str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())
        assert left == ["lock.json", "set-aside/usr/lib/x/.keep"]
        assert not (state / "set-aside" / "etc").exists()
        assert not cache.exists()
        assert not opt.exists()
    assert release.PATH.startswith("/var/lib/hostwright/")
