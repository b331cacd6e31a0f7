"""Tests of grouping checks into units that run in parallel, with made-up files and marks."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hostwright.verify.units import (
    ALONE,
    BESIDE,
    MOST_LANES,
    MOST_PER_HOST,
    HostUnits,
    PlacedCheck,
    lanes_for,
    units_of,
)

BASE, CUDA, OWN = Path("test_base.py"), Path("test_cuda.py"), Path("site/test_base.py")


def placed(file: Path, *marks: str) -> PlacedCheck:
    return PlacedCheck(file, not file.is_relative_to("site"), frozenset(marks))


def test_a_standard_file_is_a_unit_and_a_marked_check_another():
    checks = [placed(BASE), placed(BASE, BESIDE), placed(BASE), placed(CUDA), placed(CUDA, BESIDE)]
    assert units_of(checks) == HostUnits(((3,), (4,), (0, 2), (1,)), ())


def test_checks_of_a_site_are_one_after_another_unless_they_say_otherwise():
    other = Path("site/test_motd.py")
    checks = [placed(OWN), placed(BASE), placed(other), placed(other, BESIDE)]
    assert units_of(checks) == HostUnits(((0, 2), (3,), (1,)), ())


def test_what_disturbs_others_is_apart_whatever_else_it_says():
    checks = [placed(BASE, ALONE), placed(OWN, ALONE, BESIDE), placed(BASE)]
    assert units_of(checks) == HostUnits(((2,),), (0, 1))


def test_a_file_of_which_all_checks_are_marked_leaves_no_empty_unit():
    assert units_of([placed(BASE, BESIDE), placed(CUDA, ALONE)]) == HostUnits(((0,),), (1,))
    assert units_of([]) == HostUnits((), ())


@given(
    st.lists(st.builds(placed, st.sampled_from([BASE, CUDA, OWN]), st.sampled_from(["", ALONE, BESIDE])), max_size=30)
)
def test_every_check_is_in_one_unit_and_keeps_its_place_there(checks):
    units = units_of(checks)
    assert sorted(number for unit in (*units.side_by_side, units.alone) for number in unit) == [*range(len(checks))]
    assert all(list(unit) == sorted(unit) for unit in (*units.side_by_side, units.alone))
    assert all({ALONE in checks[number].marks for number in unit} == {False} for unit in units.side_by_side)


@given(st.integers(1, 5000), st.integers(0, 40))
def test_lanes_are_bounded_for_a_host_and_for_all_of_them(hosts, number):
    lanes = lanes_for(hosts, HostUnits(tuple((n,) for n in range(number)), ()))
    assert 1 <= lanes <= max(1, min(MOST_PER_HOST, number))
    assert lanes == 1 or lanes * hosts <= MOST_LANES
