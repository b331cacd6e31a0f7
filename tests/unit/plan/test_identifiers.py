"""Names that other programs and records know us by are the recorded ones: no rewording of sentences touches them."""

from __future__ import annotations

import json

from tests.unit.support.identifiers import FILE, identifiers


def test_names_are_those_that_others_know() -> None:
    """Where a name was added, ``python -m tests.unit.support.identifiers`` records it; look at what it changes."""
    recorded, found = json.loads(FILE.read_text("utf-8")), json.loads(json.dumps(identifiers()))
    assert list(found) == list(recorded)
    assert all(recorded.values()), "every kind of identifier"
    assert {what: found[what] for what in found if found[what] != recorded[what]} == {}
