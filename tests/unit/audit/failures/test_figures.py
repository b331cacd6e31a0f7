"""How many of the public error texts the rules name rightly, in both halves: numbers only, no text of the unseen half.

The document says the same figures. A class that no rule was mapped to counts as one that nothing names rightly.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.unit.support.checkout import here
from tests.unit.support.known import BY_NAME, KNOWN

CORPUS = Path(__file__).parents[3] / "fixtures" / "failures"
CLASSES: dict[str, list[str]] = json.loads((CORPUS / "classes.json").read_text(encoding="utf-8"))
NONE_YET = "none-yet: "


def rightly(entry: dict[str, Any]) -> set[str]:
    """The rules that name the cause of a text rightly: those of its class in ``classes.json``, else the rule that is
    called as the class is; none where there is neither.
    """
    classes = (name.removeprefix(NONE_YET) for name in entry["expect"])
    return {name for cause in classes for name in CLASSES.get(cause, [cause.lower()]) if name in BY_NAME}


def outcome(entry: dict[str, Any]) -> str:
    failure = KNOWN.classify(entry["text"])
    if not entry["expect"]:
        return "harmless, blamed" if failure else "harmless"
    if failure is None:
        return "not named"
    if failure.rule.name in rightly(entry):
        return "right"
    also = {name for rule in entry["also"] for name in CLASSES.get(rule, [rule])}
    # the words of a tool around another one name what failed, and no cause
    return "general" if failure.rule.name in also or failure.rule.weight == "wrapper" else "wrong"


def counted(half: str) -> Counter[str]:
    lines = (CORPUS / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    figures = Counter(outcome(entry) for entry in entries)
    figures["failing"] = sum(bool(entry["expect"]) for entry in entries)
    figures["without a rule"] = sum(bool(entry["expect"]) and not rightly(entry) for entry in entries)
    return figures


#: at least so many are right, at most so many wrong, and at most so many harmless ones blamed: the document's figures
FLOORS = {"known": (1685, 12, 1), "unseen": (307, 5, 0)}
#: of those that are right: by a rule of these roles
OF_PEOPLE = {"known": {"proxy": 1, "workspaces": 3}, "unseen": {}}


def test_the_classes_name_rules() -> None:
    assert list(CLASSES) == sorted(CLASSES)
    assert {name for names in CLASSES.values() for name in names if here(name)} - set(BY_NAME) == set()


@pytest.mark.parametrize("half", FLOORS)
def test_the_rules_name_as_many_texts_as_the_document_says(half: str) -> None:
    figures = counted(half)
    least, most, blamed = FLOORS[half]
    least -= sum(right for role, right in OF_PEOPLE[half].items() if not here(role))
    assert figures["right"] >= least, dict(figures)
    assert figures["wrong"] <= most, dict(figures)
    assert figures["harmless, blamed"] <= blamed, dict(figures)
