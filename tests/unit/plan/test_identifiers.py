"""Names that other programs and records know us by are the recorded ones: no rewording of sentences touches them."""

from __future__ import annotations

import json

import pytest

from tests.unit.support.identifiers import FILE, identifiers

RECORDED = json.loads(FILE.read_text("utf-8"))
FOUND = json.loads(json.dumps(identifiers()))


@pytest.mark.parametrize("what", list(RECORDED))
def test_names_are_those_that_others_know(what: str) -> None:
    """Where a name was added, ``python -m tests.unit.support.identifiers`` records it; look at what it changes."""
    assert FOUND[what] == RECORDED[what]


def test_the_fixture_has_every_kind_of_identifier() -> None:
    assert list(FOUND) == list(RECORDED)
    assert all(RECORDED.values())
