"""Medians, ratios and slopes of samples."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.figures.sample import Sample


class NotMeasured(LookupError):
    """A figure needs samples that are missing."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum and maximum of values."""

    median: float
    least: float
    most: float
    count: int


@dataclass(frozen=True, slots=True)
class Series:
    """Key of samples that belong together: contender, size and variant."""

    contender: str
    size: int
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """The samples of one case, and values computed from them."""

    samples: tuple[Sample, ...]
    #: processor seconds that the calibration took before the case; 0: not measured
    calibration_s: float = 0.0

    def series(self) -> tuple[Series, ...]:
        """All series, in the order of their first samples."""
        return tuple(dict.fromkeys(Series(one.contender, one.size, one.variant) for one in self.samples))

    def values(self, contender: str, size: int, what: str, variant: str = "") -> tuple[float, ...]:
        """Values of all rounds for ``what``: ``wall_s``, or a name in ``Sample.extra``."""
        found = [
            getattr(one, what) if what in Sample.__slots__ else one.extra.get(what)
            for one in self.samples
            if (one.contender, one.size, one.variant) == (contender, size, variant)
        ]
        return tuple(float(value) for value in found if value is not None)

    def spread(self, contender: str, size: int, what: str, variant: str = "") -> Spread:
        """Median, minimum and maximum. Raises ``NotMeasured`` without samples."""
        return spread(self.values(contender, size, what, variant), f"{contender}, {size}, {what} {variant}".strip())

    def median(self, contender: str, size: int, what: str, variant: str = "") -> float:
        """Median over the rounds."""
        return self.spread(contender, size, what, variant).median

    def ratio(self, contender: str, other: str, size: int, what: str, variant: str = "") -> float:
        """Ratio of the medians of ``contender`` and ``other``."""
        return divided(self.median(contender, size, what, variant), self.median(other, size, what, variant))

    def per_added(self, contender: str, small: int, large: int, what: str, variant: str = "") -> float:
        """Cost of each additional host, from the medians of two sizes."""
        more = self.median(contender, large, what, variant) - self.median(contender, small, what, variant)
        return divided(more, large - small)

    def slope(self, contender: str, size: int, what: str, at: dict[str, float]) -> float:
        """Slope of the least-squares line through the medians; ``at``: variant → x value."""
        places = list(at.values())
        return statistics.linear_regression(places, [self.median(contender, size, what, one) for one in at]).slope


def spread(values: Iterable[float], what: str) -> Spread:
    """Median, minimum and maximum of values. Raises ``NotMeasured`` without values."""
    ordered = sorted(values)
    if not ordered:
        raise NotMeasured(what)
    return Spread(statistics.median(ordered), ordered[0], ordered[-1], len(ordered))


def divided(value: float, by: float) -> float:
    """Quotient of two values. Raises ``NotMeasured`` for a zero divisor."""
    if by == 0:
        raise NotMeasured("nothing to divide by")
    return value / by
