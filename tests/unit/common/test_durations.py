"""Durations: accepted and refused texts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.common.durations import LONGEST_S, Clock, seconds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("3d", 259200), ("2w", 1209600), ("1d12h", 129600),
        ("1d 12h", 129600), (" 5M ", 300), ("1.5", 1.5), (5, 5), (0.25, 0.25), ("520w", 314496000),
    ],
)  # fmt: skip
def test_a_duration_is_its_seconds(text: str | float, wanted: float) -> None:
    assert seconds(text) == wanted
    assert isinstance(seconds(text), float)


@pytest.mark.parametrize(
    "text",
    ["", "0", "0s", "-3", "12h1d", "1h1h", "5x", "1e9", "nan", "٣", "600w", True, None, [], -1, 0, 10**400,
     math.nan, math.inf, -math.inf],
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_examples(text: object) -> None:
    with pytest.raises(ValueError, match=r"expected a duration such as 90 \(seconds\), 90s, 15m, 2h, 3d, 2w or 1d12h"):
        seconds(text)  # type: ignore[arg-type]


@given(st.text(max_size=40) | st.integers() | st.floats())
def test_any_text_is_a_positive_duration_or_a_short_error(text: str | float) -> None:
    try:
        assert 0 < seconds(text) <= LONGEST_S
    except ValueError as error:
        assert len(str(error)) < 200


@given(st.integers(1, 9), st.integers(0, 6), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_units_add_up(w: int, d: int, h: int, m: int, s: int) -> None:
    assert seconds(f"{w}w{d}d{h}h{m}m{s}s") == (((w * 7 + d) * 24 + h) * 60 + m) * 60 + s


def test_the_clock_is_the_machines_own_unless_another_one_is_given() -> None:
    clock = Clock()
    first = clock.now_s()
    clock.sleep(0.0)
    assert clock.now_s() >= first
    assert len(clock.time_of_day()) == len("07:12:03")
