"""Tests that roles are found, ordered and typed."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.model import Resource
from hostwright.plan.roles.role import EVERY, Role, discover, goes_before, in_order, role
from hostwright.resources.files.files import Absent
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile
from tests.places import PROJECT
from tests.unit.support.stacks import load_stack


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


def test_discovered_roles_come_after_those_that_they_need():
    names = [one.name for one in discover()]
    assert {*names} == {folder.parent.name for folder in (PROJECT / "roles").glob("*/__init__.py")}
    assert len(names) >= 10
    for one in discover():
        assert all(names.index(need) < names.index(one.name) for need in one.needs)


@pytest.fixture
def made_up_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with one role in a folder, a part beside it, and a role that cannot be imported."""
    folder = tmp_path / "made_up_roles" / "motd"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder / "__init__.py").write_text(
        "from tests.unit.plan.test_role import Motd\nfrom hostwright.plan.roles.role import role\n\n"
    )
    with (folder / "__init__.py").open("a") as module:
        module.write("@role()\ndef motd(v: Motd, stack: object):\n    yield from ()\n")
    (folder / "rules.py").write_text("RULES = ('one',)\n")
    (folder / "broken.py").write_text("import there_is_no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "made_up_roles"
    for name in [name for name in sys.modules if name.partition(".")[0] == "made_up_roles"]:
        del sys.modules[name]


def test_a_roles_parts_are_the_modules_in_its_folder(made_up_roles: str):
    (one,) = discover(made_up_roles)
    rules = one.part("rules")
    assert rules is not None
    assert rules.RULES == ("one",)
    assert one.part("failures") is None


def test_a_part_that_cannot_be_imported_is_an_error_and_not_absent(made_up_roles: str):
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        discover(made_up_roles)[0].part("broken")


def test_a_role_in_a_single_file_has_no_parts():
    assert motd.part("rules") is None


def test_unknown_needs_and_circles_are_named():
    with pytest.raises(InputError, match="needs the unknown role 'nothing-like-it'"):
        in_order({"a": named("a", "nothing-like-it")})
    with pytest.raises(InputError, match="in a loop"):
        in_order({"a": named("a", "b"), "b": named("b", "a")})


def test_what_a_role_comes_after_orders_it_and_may_be_absent():
    late = Role("a", (), Motd, motd.function, "", after=("b", "not-here"))
    assert [one.name for one in in_order({"a": late, "b": named("b")})] == ["b", "a"]
    assert [one.name for one in in_order({"a": late})] == ["a"]
    assert late.follows == ("b", "not-here")


def test_a_role_may_come_after_every_other():
    last = Role("a", (), Motd, motd.function, "", after=(EVERY,))
    too = Role("b", ("a",), Motd, motd.function, "", after=(EVERY,))
    roles = {"b": too, "a": last, "c": named("c"), "z": named("z", "c")}
    assert [one.name for one in in_order(roles)] == ["c", "z", "a", "b"]
    assert goes_before(roles.values()) == {"b": ("a", "c", "z"), "a": ("c", "z"), "c": (), "z": ("c",)}


def test_layers_stand_in_the_order_of_the_stack():
    roles = in_order({one.name: one for one in discover()}, load_stack("tensorflow-2.9").roles)
    order = (
        "base", "driver", "cuda", "nccl", "cudnn", "environment", "tensorrt", "tensorflow", "container", "registry",
        "workspaces", "proxy", "jupyterhub", "serving", "selfaudit",
    )  # fmt: skip
    found = [one.name for one in roles if one.name in order]
    assert found == [name for name in order if (PROJECT / "roles" / name).is_dir()]


def test_who_forces_is_told_to_every_role(tmp_path: Path):
    """The operator's --force is a value that every role receives, not a variable of a role."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    for force in (False, True):
        (target,) = Fleet.load(tmp_path, Request(force=force)).targets("gpu01", ["driver"])
        assert target.variables["driver"].force is False
        (runfile,) = [one for one in target.desired.roles[0].resources if isinstance(one, NvidiaRunfile)]
        assert runfile.force is force
