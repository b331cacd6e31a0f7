"""Tests of the corpus of public error texts for failure rules: fields, ids, labels and halves."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.unit.support.known import BY_NAME

CORPUS = Path(__file__).parents[3] / "fixtures" / "failures"
HALVES = ("known", "unseen")
FIELDS = {"id", "source", "kind", "cause", "cure", "basis", "expect", "also", "text"}
WHOLE_LOG = 15  #: lines: a text with as many or more counts as a whole log
NONE_YET = re.compile(r"none-yet: [A-Z0-9]+(-[A-Z0-9]+)*")


def entries(half: str) -> list[dict[str, Any]]:
    lines = (CORPUS / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


ENTRIES = {half: entries(half) for half in HALVES}
ALL = [entry for half in HALVES for entry in ENTRIES[half]]
FAILING = [entry for entry in ALL if entry["expect"]]


def test_there_are_enough_texts() -> None:
    assert len(FAILING) >= 400
    assert sum(entry["kind"] == "log" for entry in FAILING) >= 120
    assert len(ALL) - len(FAILING) >= 150, "harmless texts"


def test_the_unseen_half_is_large_enough_to_measure_with() -> None:
    failing = [entry for entry in ENTRIES["unseen"] if entry["expect"]]
    assert len(failing) >= 150
    assert 7 * sum(entry["kind"] == "log" for entry in failing) >= len(failing)
    assert len(ENTRIES["unseen"]) - len(failing) >= 150, "harmless texts"


@pytest.mark.parametrize("half", HALVES)
def test_all_texts_of_a_thread_are_in_one_half(half: str) -> None:
    others = {entry["source"] for name in HALVES if name != half for entry in ENTRIES[name]}
    assert {entry["source"] for entry in ENTRIES[half]} & others == set()


def test_ids_and_texts_are_unique_and_in_order() -> None:
    for half in HALVES:
        ids = [entry["id"] for entry in ENTRIES[half]]
        assert ids == sorted(ids)
    for field in ("id", "text"):
        assert [value for value, count in Counter(entry[field] for entry in ALL).items() if count > 1] == []


def test_each_entry_is_whole() -> None:
    for entry in ALL:
        which = entry["id"]
        assert set(entry) == FIELDS, which
        assert entry["source"] and entry["text"].strip() and entry["cause"].endswith("."), which
        assert entry["basis"] in {"answer", "message"}, which
        assert entry["kind"] == ("log" if entry["text"].count("\n") + 1 >= WHOLE_LOG else "line"), which
        assert bool(entry["cure"]) == bool(entry["expect"]), which
        unknown = [name for name in entry["expect"] if name not in BY_NAME and not NONE_YET.fullmatch(name)]
        assert unknown == [], f"{which}: an expected rule does not exist"
        assert [name for name in entry["also"] if name not in BY_NAME] == [], which
