"""Sizes and times for people, in one style."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.common.text import ago, shown_bytes, shown_seconds


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1_000, "1 kB"), (999_400, "999 kB"), (999_600, "1 MB"), (34_000_000, "34 MB"),
        (999_600_000, "1.0 GB"), (5_230_000_000, "5.2 GB"), (3 * 10**12, "3000.0 GB"),
    ],
)  # fmt: skip
def test_bytes(number: int, text: str) -> None:
    assert shown_bytes(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (200, "3 min 20 s"), (3599.6, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)  # fmt: skip
def test_seconds(seconds: float, text: str) -> None:
    assert shown_seconds(seconds) == text


@given(st.floats(-1e9, 1e9))
def test_what_is_over_is_never_in_the_future(seconds: float) -> None:
    assert "-" not in ago(seconds)
