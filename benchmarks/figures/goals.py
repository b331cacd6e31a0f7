"""Goals: limits for figures of the benchmark. A verdict on a goal is always computed from samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from benchmarks.figures.statistics import Figures, NotMeasured, divided

Verdict = Literal["reached", "not reached", "not measured"]
_RATIOS = {" s": "×", " ms": "‰"}  #: unit of a time → unit of the ratio of the time to the calibration


@dataclass(frozen=True, slots=True)
class Goal:
    """Maximum of a figure or, with ``at_least``, minimum."""

    what: str
    limit: float
    value: Callable[[Figures], float]  #: function that computes the figure or raises ``NotMeasured``
    unit: str = ""  #: unit text to print after the value
    at_least: bool = False  #: whether the limit of the goal is a minimum

    @property
    def timed(self) -> bool:
        """Whether the figure is a time, which is divided by the calibration before the comparison."""
        return self.unit in _RATIOS

    @property
    def title(self) -> str:
        """Title of the figure in ``docs/performance.md``."""
        return f"{self.what} / the calibration" if self.timed else self.what

    @property
    def judged_unit(self) -> str:
        """Unit of the value that is compared with the limit."""
        return _RATIOS.get(self.unit, self.unit)

    @property
    def wanted(self) -> str:
        """Limit as text for ``docs/performance.md``, such as ``≤ 1.15×``."""
        return f"{'≥' if self.at_least else '≤'} {number(self.limit)}{self.judged_unit}"


@dataclass(frozen=True, slots=True)
class Judged:
    """Goal with the value of its figure, and the verdict."""

    goal: Goal
    value: float | None  #: value of the figure; for a time: ratio of the time to the calibration
    verdict: Verdict
    time: float | None = None  #: seconds of a time before the division by the calibration

    @property
    def shown(self) -> str:
        """Value as text for ``docs/performance.md``."""
        return "–" if self.value is None else f"{number(self.value)}{self.goal.judged_unit}"

    @property
    def shown_time(self) -> str:
        """Measured time as text for ``docs/performance.md``; empty if the figure is not a time."""
        return "" if self.time is None else f"{number(self.time)}{self.goal.unit}"


def judge(goal: Goal, figures: Figures) -> Judged:
    """Return the verdict on ``goal``, computed from exact values of ``figures``."""
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
    """Format a number with three significant digits, without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    text = f"{value:#.3g}"
    return text.rstrip("0").rstrip(".") if float(text) == int(float(text)) else text
