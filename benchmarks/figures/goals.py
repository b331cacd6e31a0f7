"""Goals, and whether the samples reach them: always computed, never written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from benchmarks.figures.statistics import Figures, NotMeasured, divided

Verdict = Literal["reached", "not reached", "not measured"]
_RATIOS = {" s": "×", " ms": "‰"}  #: the unit of a time → that of its ratio to the seconds of the calibration


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure with its limit."""

    what: str  #: the figure, in words
    limit: float
    value: Callable[[Figures], float]  #: raises ``NotMeasured``
    unit: str = ""  #: of the value, as it is printed behind it
    at_least: bool = False  #: the limit is the least that is good, not the most

    @property
    def timed(self) -> bool:
        """Whether the figure is a time, which depends on the machine's speed: then it is judged as a ratio to the
        calibration, whose seconds ``limit`` counts."""
        return self.unit in _RATIOS

    @property
    def title(self) -> str:
        """The figure as the page names it."""
        return f"{self.what} / the calibration" if self.timed else self.what

    @property
    def judged_unit(self) -> str:
        """The unit of what is judged."""
        return _RATIOS.get(self.unit, self.unit)

    @property
    def wanted(self) -> str:
        """The limit as the page shows it."""
        return f"{'≥' if self.at_least else '≤'} {number(self.limit)}{self.judged_unit}"


@dataclass(frozen=True, slots=True)
class Judged:
    """A goal, its value, and whether that reaches it."""

    goal: Goal
    value: float | None  #: of a time, its ratio to the calibration
    verdict: Verdict
    time: float | None = None  #: in seconds, where `value` is its ratio

    @property
    def shown(self) -> str:
        """The value as the page shows it."""
        return "–" if self.value is None else f"{number(self.value)}{self.goal.judged_unit}"

    @property
    def shown_time(self) -> str:
        """The time as the page shows it; empty for a figure that is none."""
        return "" if self.time is None else f"{number(self.time)}{self.goal.unit}"


def judge(goal: Goal, figures: Figures) -> Judged:
    """Whether a goal is reached by the measured value itself, not by the rounded one that is shown."""
    time = None
    try:
        value = goal.value(figures)
        if goal.timed:
            time = value
            value = divided(time, figures.calibration_s)
    except NotMeasured:
        return Judged(goal, None, "not measured", time)
    good = value >= goal.limit if goal.at_least else value <= goal.limit
    return Judged(goal, value, "reached" if good else "not reached", time)


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    text = f"{value:#.3g}"
    return text.rstrip("0").rstrip(".") if float(text) == int(float(text)) else text
