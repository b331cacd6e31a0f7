"""Tests of the order of layers, of one host's roles and of many hosts'."""

from __future__ import annotations

from graphlib import CycleError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.roles.layers import in_sequence, one_order

NAMED = ("base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container")
BEFORE = {
    "base": (), "container": ("base", "driver"), "cuda": ("base",), "cudnn": ("cuda",), "driver": ("base",),
    "environment": ("cuda", "cudnn"), "tensorflow": ("base",),
}  # fmt: skip


def test_layers_stand_as_the_stack_names_them():
    assert in_sequence(BEFORE, NAMED) == NAMED


def test_what_goes_before_a_layer_stands_before_it_whatever_the_stack_says():
    assert in_sequence({"a": ("b",), "b": ()}, ("a", "b")) == ("b", "a")


def test_unnamed_layer_is_placed_by_what_it_follows():
    watching = {**BEFORE, "nccl": ("cuda",), "selfaudit": ("container", "environment", "tensorflow")}
    assert in_sequence(watching, NAMED) == (*NAMED[:3], "nccl", *NAMED[3:], "selfaudit")


def test_layers_in_a_circle_are_an_error():
    with pytest.raises(CycleError):
        in_sequence({"a": ("b",), "b": ("a",)})


def test_the_layers_of_hosts_with_other_roles_are_put_into_one_order():
    orders = [("base", "container", "selfaudit", "gpu"), ("base", "driver", "cuda", "container", "gpu")]
    assert one_order(orders) == ("base", "driver", "cuda", "container", "selfaudit", "gpu")


def test_hosts_that_disagree_are_shown_as_they_are_met():
    assert one_order([("a", "b"), ("b", "a", "c")]) == ("a", "b", "c")


@given(st.permutations(NAMED), st.lists(st.sets(st.sampled_from(NAMED)), max_size=5))
def test_each_hosts_own_order_is_kept(whole: list[str], hosts: list[set[str]]):
    orders = [[name for name in whole if name in own] for own in hosts]
    order = one_order(orders)
    assert sorted(order) == sorted(set().union(*hosts))
    for own in orders:
        assert [name for name in order if name in own] == own


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=5), max_size=5))
def test_one_order_has_each_layer_once(orders: list[list[str]]):
    order = one_order(orders)
    assert len(set(order)) == len(order)
    assert set(order) == {name for own in orders for name in own}
