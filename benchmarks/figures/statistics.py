"""Medians, ratios and slopes of the benchmark's samples."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.figures.sample import Sample


class NotMeasured(LookupError):
    """Error for a figure without the required samples."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum, maximum and number of values."""

    median: float
    least: float
    most: float
    count: int


@dataclass(frozen=True, slots=True)
class Series:
    """Key of the samples with the same tool, number of hosts and variant."""

    contender: str
    size: int
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """Samples of one case, with methods for medians and ratios."""

    samples: tuple[Sample, ...]
    #: processor seconds that the calibration took before the case; 0: not measured
    calibration_s: float = 0.0

    def series(self) -> tuple[Series, ...]:
        """Return the keys of all series, in the order of their first samples."""
        return tuple(dict.fromkeys(Series(one.contender, one.size, one.variant) for one in self.samples))

    def values(self, contender: str, size: int, what: str, variant: str = "") -> tuple[float, ...]:
        """Return a series' values of ``what``: a field of ``Sample`` or a name in ``Sample.extra``."""
        found = [
            getattr(one, what) if what in Sample.__slots__ else one.extra.get(what)
            for one in self.samples
            if (one.contender, one.size, one.variant) == (contender, size, variant)
        ]
        return tuple(float(value) for value in found if value is not None)

    def spread(self, contender: str, size: int, what: str, variant: str = "") -> Spread:
        """Return the spread of a series' values of ``what``. Raises ``NotMeasured`` without samples."""
        return spread(self.values(contender, size, what, variant), f"{contender}, {size}, {what} {variant}".strip())

    def median(self, contender: str, size: int, what: str, variant: str = "") -> float:
        """Return the median of a series' values of ``what``. Raises ``NotMeasured`` without samples."""
        return self.spread(contender, size, what, variant).median

    def ratio(self, contender: str, other: str, size: int, what: str, variant: str = "") -> float:
        """Return the ratio of the medians of ``what`` for the tools ``contender`` and ``other``."""
        return divided(self.median(contender, size, what, variant), self.median(other, size, what, variant))

    def per_added(self, contender: str, small: int, large: int, what: str, variant: str = "") -> float:
        """Return the increase of ``what`` per added host, from the medians with ``small`` and ``large`` hosts."""
        more = self.median(contender, large, what, variant) - self.median(contender, small, what, variant)
        return divided(more, large - small)

    def slope(self, contender: str, size: int, what: str, at: dict[str, float]) -> float:
        """Return the slope of a least-squares line through the medians of variants. ``at``: variant → x value."""
        places = list(at.values())
        return statistics.linear_regression(places, [self.median(contender, size, what, one) for one in at]).slope


def spread(values: Iterable[float], what: str) -> Spread:
    """Return median, minimum and maximum of ``values``. Raises ``NotMeasured(what)`` without values."""
    ordered = sorted(values)
    if not ordered:
        raise NotMeasured(what)
    return Spread(statistics.median(ordered), ordered[0], ordered[-1], len(ordered))


def divided(value: float, by: float) -> float:
    """Return ``value`` divided by ``by``. Raises ``NotMeasured`` if ``by`` is 0."""
    if by == 0:
        raise NotMeasured("nothing to divide by")
    return value / by
