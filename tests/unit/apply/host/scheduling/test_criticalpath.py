"""Which role is the most urgent: chains, ties, roles that are not there, and properties of made-up graphs."""

from __future__ import annotations

from graphlib import CycleError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.host.scheduling.durations import (
    most_urgent_first,
    remaining,
    remaining_of_steps,
)

#: as ``planning`` gives them: with the needs of the needs
NEEDS = {
    "base": (),
    "driver": ("base",),
    "cuda": ("base",),
    "cudnn": ("base", "cuda"),
    "environment": ("base", "cuda", "cudnn"),
    "tensorflow": ("base",),
    "container": ("base", "driver"),
}
SECONDS = {"base": 20, "driver": 12, "cuda": 30, "cudnn": 5, "environment": 4, "tensorflow": 60, "container": 25}


def test_what_is_left_is_the_longest_chain():
    assert remaining(NEEDS, SECONDS) == {
        "base": 80, "driver": 37, "cuda": 39, "cudnn": 9, "environment": 4, "tensorflow": 60, "container": 25,
    }  # fmt: skip


def test_the_most_urgent_comes_first():
    wanted = ("base", "tensorflow", "cuda", "driver", "container", "cudnn", "environment")
    assert most_urgent_first(NEEDS, SECONDS) == wanted


def test_a_need_that_has_nothing_to_do_counts_as_done():
    assert remaining({"cudnn": ("base", "cuda")}, {"cudnn": 5, "cuda": 30}) == {"cudnn": 5}
    assert most_urgent_first({"cudnn": ("cuda",)}, {}) == ("cudnn",)


def test_each_step_counts_those_after_it_and_the_roles_after_its_own():
    steps = {"base": (15, 5), "driver": (12,), "container": (20, 5), "tensorflow": (1, 2)}
    needs = {name: NEEDS[name] for name in steps}
    assert remaining_of_steps(needs, steps) == {
        "base": (57, 42), "driver": (37,), "container": (25, 5), "tensorflow": (3, 2),
    }  # fmt: skip
    assert remaining_of_steps({"base": ()}, {}) == {"base": ()}


def test_a_circle_is_refused():
    for ask in (remaining, most_urgent_first):
        with pytest.raises(CycleError):
            ask({"driver": ("cuda",), "cuda": ("driver",)}, {})


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
    """Roles that need some of those before them, in whatever order they are named, and some that are not there."""
    names = [f"r{number}" for number in range(draw(st.integers(0, 8)))]
    needs = {
        name: tuple(draw(st.lists(st.sampled_from([*names[:place], "absent"]), unique=True, max_size=4)))
        for place, name in enumerate(names)
    }
    seconds = {name: float(draw(st.integers(0, 50))) for name in names}
    return {name: needs[name] for name in draw(st.permutations(names))}, seconds


@given(graphs())
def test_what_is_left_is_never_less_than_what_is_left_of_those_that_wait(graph):
    needs, seconds = graph
    left = remaining(needs, seconds)
    for name, before in needs.items():
        for need in set(before) & set(needs):
            assert left[need] >= seconds[need] + left[name]


@given(graphs())
def test_every_role_is_named_once_and_after_its_needs(graph):
    needs, seconds = graph
    order = most_urgent_first(needs, seconds)
    assert sorted(order) == sorted(needs)
    for name, before in needs.items():
        assert all(order.index(need) < order.index(name) for need in set(before) & set(needs))


@given(graphs())
def test_the_first_step_of_a_role_has_left_what_its_role_has(graph):
    needs, seconds = graph
    steps = {name: (seconds[name] / 2, seconds[name] / 2) for name in needs}
    left = remaining(needs, seconds)
    assert {name: first for name, (first, _) in remaining_of_steps(needs, steps).items()} == left
