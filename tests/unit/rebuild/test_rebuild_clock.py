"""Phases are timed, whatever becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.common.durations import Clock
from hostwright.rebuild.host.clock import Phases
from hostwright.rebuild.rebuild import PHASES, Phase


def ticking(*steps: float) -> Clock:
    """A clock that goes on by these steps, one at each look."""
    times: Iterator[float] = accumulate(steps)
    return Clock(now_s=lambda: next(times))


def test_phases_come_in_their_order_and_add_up():
    heard: list[tuple[str, float]] = []
    begun: list[str] = []
    phases = Phases(
        ticking(100, 1, 5, 1, 10, 1, 7, 2), on_begin=begun.append, on_end=lambda name, s: heard.append((name, s))
    )
    with phases.phase("provision"):
        pass
    with phases.phase("diagnose"):
        pass
    with phases.phase("provision"):
        pass
    assert phases.taken == (("diagnose", 10), ("provision", 12))
    assert heard == [("provision", 5), ("diagnose", 10), ("provision", 7)]
    assert begun == ["provision", "diagnose", "provision"]
    assert phases.total_s == 27


def test_a_phase_that_fails_is_timed_and_the_next_can_begin():
    phases = Phases(ticking(0, 1, 4, 1, 2))
    with pytest.raises(OSError), phases.phase("power"):
        raise OSError("the BMC is away")
    with phases.phase("reboot"):
        pass
    assert phases.taken == (("power", 4), ("reboot", 2))


def test_phases_do_not_nest_and_have_their_names():
    phases = Phases(ticking(0, 1, 1, 1))
    with phases.phase("power"), pytest.raises(ValueError, match="power"), phases.phase("reboot"):
        pass
    with pytest.raises(ValueError, match="'lunch' cannot begin"), phases.phase("lunch"):  # type: ignore[arg-type]
        pass
    assert [name for name, _ in phases.taken] == ["power"]


@given(st.sampled_from(PHASES), st.sampled_from(PHASES), st.floats(-10, 100), st.floats(0, 50))
def test_moving_seconds_keeps_the_sum(source: Phase, target: Phase, seconds: float, took_s: float):
    phases = Phases(ticking(0, 0, took_s))
    with phases.phase(source):
        pass
    phases.move(source, target, seconds)
    found = dict(phases.taken)
    assert sum(found.values()) == pytest.approx(took_s)
    assert all(value >= 0 for value in found.values())
    if source != target:
        assert found.get(target, 0.0) == pytest.approx(max(0.0, min(seconds, took_s)))


def test_the_wait_for_a_turn_is_not_counted():
    phases = Phases(ticking(100, 5, 3600, 7, 1))
    phases.rest()
    assert phases.total_s == 5
    assert phases.go_on() == 3600
    assert phases.total_s == 12
    assert phases.go_on() == 0
