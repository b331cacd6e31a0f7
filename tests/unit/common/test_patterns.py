"""Patterns on untrusted text."""

from __future__ import annotations

import pytest
import re2

from hostwright.common.untrusted import Pattern


@pytest.mark.parametrize("source", [r"(?=a)", r"(?<!a)b", r"(a)\1", r"a{1001}"])
def test_what_would_not_be_linear_is_no_pattern(source: str) -> None:
    with pytest.raises(re2.error):
        Pattern(source)


def test_a_half_of_a_surrogate_pair_is_read_as_a_question_mark() -> None:
    match = Pattern("b.").search("a\ud800b\ud800")
    assert match is not None
    assert (match[0], match.start(), match.end()) == ("b?", 2, 4)
    assert Pattern("b").lines("a\nb\ud800") == "b?"


def test_places_are_counted_in_characters() -> None:
    assert [(match[0], match.start()) for match in Pattern("[a-z]").finditer("é1a é2b")] == [("a", 2), ("b", 6)]
    assert Pattern("[0-9]").sub("\\0", "é1a") == "é\\0a"
