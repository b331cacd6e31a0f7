"""Every state that roles may yield says what it means, and its example, its fields and docs/resources.md are right."""

from __future__ import annotations

import ast
import doctest
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Deferred, Facts, Planned, Probe, Reboot, Refusal, Resource
from hostwright.plan.roles.meanings import meanings
from hostwright.plan.testing import facts_for, plan_text
from hostwright.resources.document import DOCUMENT, CatalogueEntry, document, entries, modules
from tests.places import PROJECT
from tests.unit.support.documents import anchors, text_of

ENTRIES = entries()
PUBLIC = [entry for entry in ENTRIES if not entry.of_a_removal]


def run_example(cls: type) -> doctest.TestResults:
    """Run the example in the docstring of a class, in its module, which need not import from ``plan.testing``."""
    (found,) = doctest.DocTestFinder(recurse=False).find(
        cls, extraglobs={"plan_text": plan_text, "facts_for": facts_for}
    )
    return doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(found)


def classes_in(path: Path) -> set[str]:
    """The public dataclasses of a file with the methods of a state or of a condition, by its syntax alone."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.decorator_list and not node.name.startswith("_"):
            methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            if methods >= {"probes", "plan"} or methods >= {"probes", "holds"}:
                found.add(node.name)
    return found


def test_the_catalogue_holds_every_state_and_condition_of_the_package() -> None:
    files = (PROJECT / "hostwright/resources").rglob("*.py")
    assert {entry.name for entry in ENTRIES} == {name for path in files for name in classes_in(path)}
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("entry", PUBLIC, ids=lambda entry: entry.name)
def test_its_example_prints_what_it_says(entry: CatalogueEntry) -> None:
    result = run_example(entry.cls)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_every_field_has_a_meaning() -> None:
    classes = [one for entry in ENTRIES for one in (entry, *entry.values())]
    assert [(one.name, field.name) for one in classes for field, meaning in one.fields if not meaning] == []


def test_the_committed_page_is_what_the_docstrings_say() -> None:
    assert text_of(DOCUMENT) == document(ENTRIES), "run python -m hostwright.resources.document"


def test_each_has_one_section_to_link_to() -> None:
    headings = re.findall(r"^### `(\w+)`$", text_of(DOCUMENT), re.MULTILINE)
    assert sorted(headings) == sorted(entry.name for entry in PUBLIC)
    assert {entry.name.lower() for entry in PUBLIC} <= anchors(DOCUMENT)


def test_the_page_names_no_constant_of_the_code() -> None:
    """Who reads the page has not its modules before him."""
    constants = {name for module in modules() for name in vars(module) if name.isupper()}
    prose = re.sub(r"^```.*?^```$", "", text_of(DOCUMENT), flags=re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`([^`]+)`", prose)) & constants == set()


@dataclass(frozen=True, slots=True)
class Lamp(Resource):
    """The lamp is on. It gets warm.

    It stays ``on``.

    >>> print(plan_text(Lamp("red")))
    ~ lamp: off → green
    """

    #: one of red, green
    #: and blue
    colour: str
    place: str = "#: hall"  #: where it hangs
    watts: tuple[int, ...] = (
        4,
        5,
    )  #: W, one a bulb
    unsaid: int = 0

    def probes(self) -> tuple[Probe, ...]:
        return ()

    def plan(self, facts: Facts) -> Planned | None:
        return PLANNED.get(self.colour)

    def removal(self) -> tuple[Resource, ...]:
        return ()


PLANNED: dict[str, Planned] = {
    "red": Refusal("lamp", "off", "red", "no-red", "red is not allowed"),
    "green": Reboot("lamp", "off", "green", "the lamp wants it"),
    "blue": Deferred("lamp", "off", "blue", "reboot"),
}


def test_an_example_that_prints_something_else_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_example(Lamp).failed == 1
    assert "refused: red is not allowed" in capsys.readouterr().out


def test_a_docstring_is_told_apart_from_its_example() -> None:
    entry = CatalogueEntry(Lamp)
    assert entry.sentence == "The lamp is on."
    assert entry.meaning == "The lamp is on. It gets warm.\n\nIt stays ``on``."
    assert [one.want for one in entry.examples] == ["~ lamp: off → green\n"]


def test_comments_are_found_behind_and_above_fields() -> None:
    assert meanings(Lamp) == {
        "colour": "one of red, green and blue", "place": "where it hangs", "watts": "W, one a bulb", "unsaid": "",
    }  # fmt: skip


def test_a_plan_is_shown_as_a_line_a_change() -> None:
    assert plan_text(Lamp("")) == "nothing to do"
    assert plan_text([Lamp("red"), Lamp("green"), Lamp("blue")], default=Answer(0, "")).splitlines() == [
        "! lamp: off → red",
        "  refused: red is not allowed",
        "~ lamp: off → green",
        "  then a reboot: the lamp wants it",
        "? lamp: off → blue  (known after reboot)",
    ]
