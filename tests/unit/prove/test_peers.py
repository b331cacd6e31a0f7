"""Tests of outliers among many equal hosts: never a host with only noise, always the slow one."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.prove.peers.comparing import FEWEST, LEAST_PART, outliers

FLEET = 24
NOISE = 0.03  #: standard deviation as a part of the value: variation of one host's figures


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - noise, not keys


def fleet(dice: random.Random, hosts: int = FLEET, noise: float = NOISE) -> dict[str, float]:
    return {f"gpu{number:02}": dice.gauss(100.0, 100.0 * noise) for number in range(hosts)}


@pytest.mark.parametrize("better", ["more", "less"])
def test_a_fleet_with_noise_alone_has_no_finding_over_20_runs(better: str) -> None:
    dice = seeded(20)  # with a least part of 0.10 instead of 0.15, this seed has a false alarm
    assert [run for run in range(20) if outliers(fleet(dice), better)] == []


def test_false_alarms_are_few_and_counted() -> None:
    """The figure in outliers.py: one in 200,000 comparisons. A fleet has about ten figures, compared every day."""
    dice = seeded(4400)
    assert sum(bool(outliers(fleet(dice), "more")) for _ in range(4400)) <= 1


@pytest.mark.parametrize(("part", "least"), [(0.4, 1.0), (0.3, 0.99), (0.2, 0.85)])
def test_a_planted_slow_host_is_found(part: float, least: float) -> None:
    dice = seeded(7)
    found = 0
    for run in range(400):
        values = fleet(dice)
        slow = f"gpu{run % FLEET:02}"
        values[slow] *= 1 - part
        found += slow in {outlier.host for outlier in outliers(values, "more")}
    assert found >= least * 400


def test_a_host_that_takes_longer_is_found_where_less_is_better() -> None:
    values = fleet(seeded(1)) | {"gpu05": 160.0, "gpu06": 55.0}
    assert [outlier.host for outlier in outliers(values, "less")] == ["gpu05"]
    assert [outlier.host for outlier in outliers(values, "more")] == ["gpu06"]


def test_a_host_at_a_fraction_of_the_speed_is_found_among_peers_that_differ_much() -> None:
    """MB/s of four lab hosts that share one machine's memory: one is limited to a tenth of a processor.

    Measured in turn.
    """
    values = {"cpu01": 44_000.0, "cpu02": 66_000.0, "cpu03": 66_000.0, "cpu04": 3_500.0}
    (outlier,) = outliers(values, "more")
    assert outlier.host == "cpu04"
    assert outlier.sigma == pytest.approx(0.30, abs=0.01)


@pytest.mark.parametrize("spread", [0.05, 0.1, 0.15, 0.2])
def test_however_much_a_fleet_differs_one_at_a_tenth_of_the_speed_is_found(spread: float) -> None:
    dice = seeded(11)
    for _ in range(100):
        values = fleet(dice, noise=spread) | {"gpu05": 10.0}
        assert "gpu05" in {outlier.host for outlier in outliers(values, "more")}


def test_a_host_that_does_nothing_is_an_outlier_and_a_median_of_nothing_has_none() -> None:
    working = {"a": 100.0, "b": 102.0, "c": 99.0}
    assert [outlier.host for outlier in outliers(working | {"d": 0.0}, "more")] == ["d"]
    assert outliers(dict.fromkeys("abcd", 0.0) | {"e": 1.0}, "more") == ()
    assert [each.host for each in outliers(dict.fromkeys("abcd", 0.0) | {"e": 1.0}, "less")] == ["e"]
    offsets = {"a": -0.2, "b": -0.1, "c": -0.15, "d": -0.12, "e": 40.0}
    assert [outlier.host for outlier in outliers(offsets, "less")] == ["e"]


def test_several_slow_hosts_are_found_the_slowest_first() -> None:
    values = fleet(seeded(2)) | {"gpu03": 40.0, "gpu11": 20.0, "gpu17": 60.0}
    assert [outlier.host for outlier in outliers(values, "more")] == ["gpu11", "gpu03", "gpu17"]


def test_three_hosts_are_too_few_and_equal_hosts_have_no_outlier() -> None:
    assert outliers({"a": 100.0, "b": 100.0, "c": 1.0}, "more") == ()
    assert outliers(dict.fromkeys("abcdef", 5.0), "more") == ()
    assert outliers({}, "more") == ()


def test_equal_peers_have_no_spread_and_the_least_part_decides() -> None:
    equal = dict.fromkeys("abcde", 100.0)
    assert outliers(equal | {"f": 100.0 * (1 - LEAST_PART) + 0.1}, "more") == ()
    (outlier,) = outliers(equal | {"f": 100.0 * (1 - LEAST_PART) - 0.1}, "more")
    assert (outlier.host, outlier.sigma, outlier.peers) == ("f", 0.0, 6)
    assert outlier.part == pytest.approx(0.151)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_does_not_count(broken: float) -> None:
    values = {"a": 100.0, "b": 101.0, "c": 99.0, "d": broken}
    assert len(values) == FEWEST
    assert outliers(values, "more") == ()
    assert [outlier.host for outlier in outliers(values | {"e": 100.0, "f": 3.0}, "more")] == ["f"]


figures = st.dictionaries(st.text(min_size=1, max_size=4), st.floats(1e-3, 1e9), max_size=30)


@given(figures)
def test_an_outlier_is_worse_than_the_median_by_both_limits(values: dict[str, float]) -> None:
    for better, sign in (("more", -1), ("less", 1)):
        for outlier in outliers(values, better):
            beyond = sign * (outlier.value - median(values.values()))
            assert beyond > LEAST_PART * outlier.median
            assert sign * math.log(outlier.value / outlier.median) > 5 * outlier.sigma


@given(figures)
def test_at_least_half_of_the_hosts_are_never_outliers(values: dict[str, float]) -> None:
    assert 2 * len(outliers(values, "more")) <= len(values)


@given(figures, st.sampled_from([0.5, 2.0, 1024.0]))
def test_the_unit_does_not_matter(values: dict[str, float], factor: float) -> None:
    scaled = {host: value * factor for host, value in values.items()}
    assert [each.host for each in outliers(scaled, "less")] == [each.host for each in outliers(values, "less")]
