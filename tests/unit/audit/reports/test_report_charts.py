"""Tests of the charts in the HTML report: shapes and colours."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.reports.html import charts as html_charts
from hostwright.audit.reports.html.charts import OTHERS, PlotArea, history
from hostwright.audit.reports.html.html import PAGE, render_html
from hostwright.audit.reports.trend import TrendPoint
from tests.unit.support.audits import fleet

DAY = datetime(2026, 11, 18, 12, tzinfo=UTC)


def points(*counts: dict[str, int]) -> tuple[TrendPoint, ...]:
    moved = (9, 4, 0)
    versions = [
        {"driver loaded": {"470.182.03": number, "470.256.02": 9 - number}, "cuda toolkit": {"11.2.2": 9}}
        for number in moved
    ]
    return tuple(TrendPoint(f"2026-11-{10 + place}", count, versions[place]) for place, count in enumerate(counts))


def test_without_a_history_there_is_a_sentence_and_no_chart():
    text = render_html(fleet())
    assert "There is no history yet." in text
    assert "<figure" not in text
    assert "one day so far, 2026-11-10" in render_html(fleet(), points({"desired": 9}))


def test_bars_of_a_day_stand_on_each_other_and_say_their_number():
    bad, every = history(points({"desired": 9}, {"drift": 2, "failing": 1, "desired": 6})).states
    first, second = bad.shapes
    assert (first.title, second.title) == ("2026-11-11: 1 host failing", "2026-11-11: 2 hosts drifted")
    assert second.y + second.height == pytest.approx(first.y)
    assert second.height == pytest.approx(2 * first.height, abs=0.1)
    assert [label for _, _, label in every.legend] == ["failing", "drifted", "as desired"]
    assert "at most 3" in bad.summary


def test_a_fleet_that_was_always_well_has_one_chart_of_states():
    assert [chart.title for chart in history(points({"desired": 9}, {"desired": 9})).states] == ["All hosts"]


def test_versions_that_changed_have_a_chart_and_the_others_a_sentence():
    found = history(points({"desired": 9}, {"desired": 9}, {"desired": 9}))
    assert [chart.title for chart in found.versions] == ["driver loaded"]
    assert [(drawn.label, drawn.hosts) for drawn in found.versions[0].lines] == [("470.256.02", 9), ("470.182.03", 0)]
    assert found.versions[0].shapes[1].title == "2026-11-11\n470.256.02: 5 hosts\n470.182.03: 4 hosts"
    assert found.steady == ("cuda toolkit 11.2.2",)


def test_rare_versions_are_summed():
    spread = {f"v{number}": 1 for number in range(8)}
    found = history([TrendPoint(f"2026-11-{day:02d}", {}, {"base kernel": spread}) for day in (1, 2)])
    assert [drawn.label for drawn in found.versions[0].lines][-1] == OTHERS
    assert found.versions[0].lines[-1].hosts == 3


def test_days_that_are_none_are_left_out_and_the_others_sorted():
    trend = [TrendPoint(day, {"desired": 1}) for day in ("2026-11-03", "never", "2026-11-01")]
    assert [point.day for point in history(trend).days] == ["2026-11-01", "2026-11-03"]


@given(st.integers(0, 10**6), st.integers(1, 800))
def test_axes_have_few_round_marks_that_hold_every_value(most, days):
    first = DAY.date()
    ground = PlotArea.of([first, first.fromordinal(first.toordinal() + days - 1)], most)
    assert ground.top >= most
    assert 2 <= len(ground.host_marks()) <= 5
    assert 1 <= len(ground.day_marks()) <= 4
    assert html_charts.TOP <= ground.y(most) <= html_charts.HEIGHT - html_charts.BOTTOM


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour: str, other: str) -> float:
    dark, light = sorted((luminance(colour), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_keep_to_wcag_aa(scheme):
    text = (PAGE / "styles/colours.css").read_text("utf-8").split("@media")[scheme]
    colour = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", text))
    states = ("failing", "drift", "differs", "intent", "new", "unread", "warning", "desired")
    pairs = [(state, ground) for state in states for ground in (f"{state}-tint", "card", "bg")]
    pairs += [(ink, ground) for ink in ("ink", "soft", "accent") for ground in ("card", "bg", "hover")]
    assert not {pair: colour for pair in pairs if contrast(colour[pair[0]], colour[pair[1]]) < 4.5}
    shapes = [*(f"{state}-solid" for state in states), *(f"k{number}" for number in range(6))]
    assert not {shape: colour[shape] for shape in shapes if contrast(colour[shape], colour["card"]) < 3}
