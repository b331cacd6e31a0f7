"""Medians, ratios, slopes, verdicts, and the file that is kept of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures.goals import Goal, judge, number
from benchmarks.figures.record import CaseRecord, Conditions
from benchmarks.figures.sample import Sample
from benchmarks.figures.statistics import Figures, NotMeasured, Series, divided, spread
from benchmarks.measuring import calibration

CONDITIONS = Conditions(
    "2026-11-24T12:00:00+00:00", "0123456789ab", {"cores": "2"}, {"pyinfra": "3.10.0"}, (0.1, 0.2, 0.3), True
)


def sample(contender: str, size: int, round_: int, wall_s: float, **more: Any) -> Sample:
    return Sample(contender, size, more.pop("variant", ""), round_, wall_s, more.pop("cpu_s", 0.5), **more)


FIGURES = Figures(
    (
        *(sample("plan", 24, number, wall_s) for number, wall_s in enumerate((3.0, 1.0, 2.0))),
        *(sample("ssh", 24, number, wall_s) for number, wall_s in enumerate((1.0, 1.5, 0.5))),
        sample("plan", 1, 0, 0.5, cpu_s=0.4),
        sample("plan", 1, 0, 0.9, variant="25 ms"),
        sample("plan", 1, 0, 2.0, variant="80 ms", extra={"copies": 3.5}),
    ),
    calibration_s=1.0,
)


def test_a_spread_is_of_all_rounds() -> None:
    found = FIGURES.spread("plan", 24, "wall_s")
    assert (found.median, found.least, found.most, found.count) == (2.0, 1.0, 3.0, 3)


def test_series_are_told_apart_by_contender_size_and_variant() -> None:
    assert FIGURES.series() == (
        Series("plan", 24), Series("ssh", 24), Series("plan", 1),
        Series("plan", 1, "25 ms"), Series("plan", 1, "80 ms"),
    )  # fmt: skip
    assert FIGURES.values("plan", 1, "wall_s") == (0.5,)


def test_what_was_not_measured_has_no_figure() -> None:
    for ask in (
        lambda: FIGURES.median("plan", 10, "wall_s"),
        lambda: FIGURES.median("plan", 24, "rss_bytes"),
        lambda: FIGURES.median("plan", 24, "copies"),
        lambda: FIGURES.ratio("plan", "pyinfra", 24, "wall_s"),
        lambda: divided(1, 0),
        lambda: spread((), "nothing"),
    ):
        with pytest.raises(NotMeasured):
            ask()


def test_values_of_a_case_alone_are_found_by_their_name() -> None:
    assert FIGURES.median("plan", 1, "copies", "80 ms") == 3.5


def test_ratios_are_of_medians() -> None:
    assert FIGURES.ratio("plan", "ssh", 24, "wall_s") == 2.0


def test_each_added_host_costs_the_difference_over_the_number() -> None:
    found = Figures((sample("plan", 1, 0, 1, cpu_s=0.7), sample("plan", 24, 0, 1, cpu_s=0.7 + 23 * 0.006)))
    assert found.per_added("plan", 1, 24, "cpu_s") == pytest.approx(0.006)


def test_round_trips_are_the_slope_of_the_wall() -> None:
    delays = {"0 ms": 0.0, "25 ms": 0.025, "80 ms": 0.08}
    found = Figures(tuple(sample("plan", 1, 0, 0.9 + 7 * delay, variant=one) for one, delay in delays.items()))
    assert found.slope("plan", 1, "wall_s", delays) == pytest.approx(7)


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=9))
def test_a_median_lies_between_least_and_most(values: list[float]) -> None:
    found = spread(values, "x")
    assert found.least <= found.median <= found.most
    assert found.count == len(values)


def wall(limit: float, *, at_least: bool = False) -> Goal:
    return Goal("wall", limit, lambda found: found.median("plan", 24, "wall_s"), " s", at_least=at_least)


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (wall(2.0), "reached"),
        (wall(1.99), "not reached"),
        (wall(2.0, at_least=True), "reached"),
        (wall(2.01, at_least=True), "not reached"),
        (Goal("x", 1, lambda found: found.median("pyinfra", 24, "wall_s")), "not measured"),
    ],
)
def test_a_verdict_is_what_the_figures_say(goal: Goal, verdict: str) -> None:
    assert judge(goal, FIGURES).verdict == verdict


def test_a_verdict_is_of_the_value_and_not_of_what_is_shown() -> None:
    found = judge(wall(1.1), Figures((sample("plan", 24, 0, 1.1004),), 1.0))
    assert (found.shown, found.goal.wanted, found.verdict) == ("1.10×", "≤ 1.10×", "not reached")


def test_a_time_is_judged_in_parts_of_the_calibration() -> None:
    """The same on a machine that is half as quick; without a calibration, only the time is shown."""
    for factor in (1.0, 2.0):
        found = judge(wall(0.5), Figures((sample("plan", 24, 0, 0.45 * factor),), factor))
        assert (found.shown, found.shown_time, found.verdict) == ("0.450×", f"{number(0.45 * factor)} s", "reached")
    found = judge(wall(0.5), Figures((sample("plan", 24, 0, 0.45),)))
    assert (found.shown, found.shown_time, found.verdict) == ("–", "0.450 s", "not measured")


def test_milliseconds_are_thousandths_of_the_calibration() -> None:
    found = judge(Goal("CPU", 6, lambda _: 5.0, " ms"), Figures((), 2.0))
    assert (found.goal.title, found.goal.wanted, found.shown) == ("CPU / the calibration", "≤ 6‰", "2.50‰")


def test_the_calibration_is_the_least_of_its_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    took_s = iter([0.9, 0.7, 0.8])
    monkeypatch.setattr(calibration, "_once", lambda: next(took_s))
    assert calibration.calibration_s() == 0.7


def test_both_halves_of_the_calibration_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "TRIES", 1)
    found = []
    for work in ((0, 0), (300, 0), (0, 30)):
        monkeypatch.setattr(calibration, "DOCUMENTS", work[0])
        monkeypatch.setattr(calibration, "PROCESSES", work[1])
        found.append(calibration.calibration_s())
    assert found[0] < min(found[1:])


def case(**more: Any) -> CaseRecord:
    return CaseRecord(CONDITIONS, 3, 61.5, FIGURES.samples, {"file": "1.4 GB"}, {"Ansible, 1": "no recap"}, **more)


def test_only_a_quiet_and_complete_case_is_whole() -> None:
    good = CaseRecord(CONDITIONS, 3, 1.0, FIGURES.samples)
    loaded = Conditions(**{**{name: getattr(CONDITIONS, name) for name in CONDITIONS.__slots__}, "quiet": False})
    assert good.whole
    assert not case().whole
    assert not CaseRecord(CONDITIONS, 3, 1.0, FIGURES.samples, cut="after 1 of 3 rounds").whole
    assert not CaseRecord(loaded, 3, 1.0, FIGURES.samples).whole
