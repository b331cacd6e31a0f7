"""Roles are found, ordered and typed."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hostwright.errors import InputError
from hostwright.model import Resource
from hostwright.resources.files import Absent
from hostwright.role import Role, discover, in_order, role


@dataclass(frozen=True, slots=True)
class Motd:
    path: str = "/etc/motd"


@role(needs=["base"])
def motd(v: Motd, stack) -> Iterator[Resource]:
    """Nothing to read at login.

    More about it.
    """
    yield Absent(v.path)


def named(name: str, *needs: str) -> Role:
    return Role(name, needs, Motd, motd.function, "")


def test_a_decorated_function_is_a_role():
    assert (motd.name, motd.needs, motd.variables, motd.summary) == (
        "motd",
        ("base",),
        Motd,
        "Nothing to read at login.",
    )
    assert motd.resources(Motd("/x"), None) == (Absent("/x"),)


def test_variables_must_be_a_dataclass():
    with pytest.raises(TypeError, match="dataclass"):

        @role()
        def bad(v: int, stack) -> Iterator[Resource]:
            yield Absent("/x")


def test_the_layers_are_found_in_order():
    names = [one.name for one in discover()]
    assert sorted(names) == ["base", "container", "cuda", "cudnn", "driver", "environment", "selfaudit", "tensorflow"]
    for one in discover():
        assert all(names.index(need) < names.index(one.name) for need in one.needs)


def test_unknown_needs_and_circles_are_named():
    with pytest.raises(InputError, match="needs nothing-like-it"):
        in_order({"a": named("a", "nothing-like-it")})
    with pytest.raises(InputError, match="in a circle"):
        in_order({"a": named("a", "b"), "b": named("b", "a")})
