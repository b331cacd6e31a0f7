"""Tests of the identity of a state in release records: its kind and fields, independent of class names in the code."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hostwright.common.canonical import canonical
from hostwright.plan.model import Probe
from hostwright.plan.state_identity import identity_fields, identity_of, kind_of
from hostwright.resources.conditions import Answers, When
from hostwright.resources.files.files import Absent, File, Link
from hostwright.resources.packages.packages import Debs, DpkgInOrder
from hostwright.stack.stack import Artifact
from hostwright.standard.roles.driver.states.modprobe import ModulesAllowed
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile
from tests.unit.support.standard import targets

KINDS = Path(__file__).parents[2] / "fixtures" / "state-kinds.json"
RUN = Artifact(name="driver", file="driver.run", urls=("https://example.org/driver.run",), sha256="0" * 64, size=7)


def test_a_state_is_its_kind_and_its_fields() -> None:
    assert identity_of(Link("/a", "/b")) == {"kind": "link", "fields": {"path": "/a", "target": "/b"}}


def test_states_in_states_probes_and_tuples_are_part_of_it() -> None:
    found = identity_of(When(Answers(Probe("test -e /x")), Debs(("a", "b"), hold=True)))
    answers = {"kind": "answers", "fields": {"probe": {"kind": "probe", "fields": {"script": "test -e /x"}}}}
    debs = {"kind": "debs", "fields": {"packages": ["a", "b"], "hold": True}}
    assert found == {"kind": "when", "fields": {"condition": answers, "resource": debs}}


def test_an_artifacts_identity_is_its_content_and_not_its_address() -> None:
    found = identity_of(NvidiaRunfile(RUN, "1.2"))
    assert found["fields"]["artifact"] == {"file": "driver.run", "sha256": "0" * 64, "size": 7}
    moved = RUN.model_copy(update={"urls": ("https://mirror.example.org/x",), "name": "other", "stand_in": True})
    assert identity_of(NvidiaRunfile(moved, "1.2")) == found
    other = RUN.model_copy(update={"sha256": "1" * 64})
    assert identity_of(NvidiaRunfile(other, "1.2")) != found


def test_force_and_reasons_are_not_part_of_an_identity() -> None:
    assert identity_of(NvidiaRunfile(RUN, "1.2", force=True)) == identity_of(NvidiaRunfile(RUN, "1.2"))
    assert identity_of(Absent("/x", "it is in the way")) == identity_of(Absent("/x"))


def test_a_class_or_field_that_was_renamed_keeps_its_former_name() -> None:
    @dataclass(frozen=True)
    class SymbolicLink:
        KIND: ClassVar = "link"
        place: str = field(metadata={"identity": "path"})
        target: str

    assert identity_of(SymbolicLink("/a", "/b")) == identity_of(Link("/a", "/b"))


def test_a_field_that_came_later_changes_nothing_where_it_has_its_default() -> None:
    @dataclass(frozen=True, slots=True)
    class Later:
        KIND: ClassVar = "link"
        path: str
        target: str
        relative: bool = False
        owners: tuple[str, ...] = field(default_factory=tuple)

    assert identity_of(Later("/a", "/b")) == identity_of(Link("/a", "/b"))
    assert identity_of(Later("/a", "/b", relative=True)) != identity_of(Link("/a", "/b"))


def test_a_class_that_inherits_has_a_kind_of_its_own() -> None:
    class Base:
        KIND = "link"

    class HardLink(Base):
        pass

    assert (kind_of(Base), kind_of(HardLink)) == ("link", "hard-link")


@pytest.mark.parametrize("value", [{"a": "b"}, ["a"], {"a"}, 1.5, b"x", Path("/x"), object(), File])
def test_a_value_without_an_identity_is_an_error(value: object) -> None:
    with pytest.raises(TypeError, match="has no identity"):
        identity_of(value)
    with pytest.raises(TypeError, match="has no identity"):
        identity_of(replace(Link("/a", "/b"), target=value))  # type: ignore[arg-type]


def test_the_text_of_equal_values_is_equal() -> None:
    assert canonical({"b": 1, "a": ["ü", None, True]}) == canonical({"a": ["ü", None, True], "b": 1})
    assert canonical({"a": 1}).isascii()
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


def classes(value: Any) -> Iterator[type]:
    """The classes of a state and of all values in it that are part of its identity."""
    if isinstance(value, tuple):
        for one in value:
            yield from classes(one)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield type(value)
        for _, each in identity_fields(type(value)):
            yield from classes(getattr(value, each.name))


def form(state: type) -> list[str]:
    """The fields of a class of states with their defaults, which are part of the identity."""
    return [name if (default := default_of(each)) is None else f"{name} = {default}"
            for name, each in sorted(identity_fields(state))]  # fmt: skip


def default_of(each: dataclasses.Field[Any]) -> str | None:
    if each.default_factory is not dataclasses.MISSING:
        return canonical(identity_of(each.default_factory()))
    return None if each.default is dataclasses.MISSING else canonical(identity_of(each.default))


def test_kinds_of_states_match_the_records_on_hosts() -> None:
    """A rename that changes identities makes every host appear changed: keep ``KIND``, or the field's former name.

    Add a new kind, or a new field with a default, to the file. Change other entries only on purpose.
    """
    every = {one for target in targets() for role in target.desired.roles for one in classes(role.resources)}
    found = {kind_of(one): form(one) for one in every}
    assert len(found) == len(every), "two classes have one kind"
    assert found == json.loads(KINDS.read_text("utf-8"))


def test_equal_states_have_equal_identities_and_others_others() -> None:
    states = {one for target in targets() for role in target.desired.roles for one in role.resources}
    # states to be removed, and names of modules, are not part of the identity
    states = {one for one in states if not isinstance(one, DpkgInOrder | ModulesAllowed)}
    assert len({canonical(identity_of(one)) for one in states}) == len(states)
