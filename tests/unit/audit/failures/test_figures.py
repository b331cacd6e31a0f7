"""Measure how many public error texts the rules identify correctly, in both halves.

The output has only numbers, no text of the unseen half. The document states the same figures. A text whose class is
mapped to no rule counts as not identified.
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
    """The rules that identify the cause of a text correctly.

    These are the rules of its class in ``classes.json``, else the rule with the name of the class; empty if neither
    exists.
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
    # the words of a wrapper name the tool that failed, but no cause
    return "general" if failure.rule.name in also or failure.rule.weight == "wrapper" else "wrong"


def counted(half: str) -> Counter[str]:
    lines = (CORPUS / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    figures = Counter(outcome(entry) for entry in entries)
    figures["failing"] = sum(bool(entry["expect"]) for entry in entries)
    figures["without a rule"] = sum(bool(entry["expect"]) and not rightly(entry) for entry in entries)
    return figures


#: smallest number of correct results, largest number of wrong ones, and of harmless texts taken for failures: the
#: figures in the document
FLOORS = {"known": (1685, 12, 1), "unseen": (307, 5, 0)}
#: correct results by a rule of these roles
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
