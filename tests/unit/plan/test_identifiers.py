"""Tests that names used by other programs and records match the recorded ones, so that rewording cannot change them."""

from __future__ import annotations

import json

from tests.unit.support.identifiers import FILE, identifiers


def test_names_are_those_that_others_know() -> None:
    """After adding a name, record it with ``python -m tests.unit.support.identifiers``, and review the changes."""
    recorded, found = json.loads(FILE.read_text("utf-8")), json.loads(json.dumps(identifiers()))
    assert list(found) == list(recorded)
    assert all(recorded.values()), "every kind of identifier"
    assert {what: found[what] for what in found if found[what] != recorded[what]} == {}
