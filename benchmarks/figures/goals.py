"""Goals, and whether the samples reach them: always computed, never written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from benchmarks.figures.statistics import Figures, NotMeasured

Verdict = Literal["reached", "not reached", "not measured"]


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure with its limit."""

    what: str  #: the figure, in words
    limit: float
    value: Callable[[Figures], float]  #: raises ``NotMeasured``
    unit: str = ""  #: of value and limit, as it is printed behind them
    at_least: bool = False  #: the limit is the least that is good, not the most

    @property
    def wanted(self) -> str:
        """The limit as the page shows it."""
        return f"{'≥' if self.at_least else '≤'} {number(self.limit)}{self.unit}"


@dataclass(frozen=True, slots=True)
class Judged:
    """A goal, its value, and whether that reaches it."""

    goal: Goal
    value: float | None
    verdict: Verdict

    @property
    def shown(self) -> str:
        """The value as the page shows it."""
        return "–" if self.value is None else f"{number(self.value)}{self.goal.unit}"


def judge(goal: Goal, figures: Figures) -> Judged:
    """Whether a goal is reached by the measured value itself, not by the rounded one that is shown."""
    try:
        value = goal.value(figures)
    except NotMeasured:
        return Judged(goal, None, "not measured")
    good = value >= goal.limit if goal.at_least else value <= goal.limit
    return Judged(goal, value, "reached" if good else "not reached")


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    text = f"{value:#.3g}"
    return text.rstrip("0").rstrip(".") if float(text) == int(float(text)) else text
