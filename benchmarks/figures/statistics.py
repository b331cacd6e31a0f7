"""Medians, ratios and slopes of samples."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.figures.sample import Sample


class NotMeasured(LookupError):
    """A figure needs samples that were not taken."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values, the least and the most."""

    median: float
    least: float
    most: float
    count: int


@dataclass(frozen=True, slots=True)
class Series:
    """Which samples belong together: those of one contender, size and variant."""

    contender: str
    size: int
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """The samples of one case, and what is computed from them."""

    samples: tuple[Sample, ...]
    calibration_s: float = 0.0  #: of the machine just before (``measuring.calibration``); 0: not measured

    def series(self) -> tuple[Series, ...]:
        """Every series, in the order of its first sample."""
        return tuple(dict.fromkeys(Series(one.contender, one.size, one.variant) for one in self.samples))

    def values(self, contender: str, size: int, what: str, variant: str = "") -> tuple[float, ...]:
        """One value (``wall_s``, or a name of ``extra``) of each round."""
        found = [
            getattr(one, what) if what in Sample.__slots__ else one.extra.get(what)
            for one in self.samples
            if (one.contender, one.size, one.variant) == (contender, size, variant)
        ]
        return tuple(float(value) for value in found if value is not None)

    def spread(self, contender: str, size: int, what: str, variant: str = "") -> Spread:
        """Median, least and most. Raises ``NotMeasured`` where there is no sample."""
        return spread(self.values(contender, size, what, variant), f"{contender}, {size}, {what} {variant}".strip())

    def median(self, contender: str, size: int, what: str, variant: str = "") -> float:
        """The median over the rounds."""
        return self.spread(contender, size, what, variant).median

    def ratio(self, contender: str, other: str, size: int, what: str, variant: str = "") -> float:
        """How many times ``other``'s median ``contender``'s is."""
        return divided(self.median(contender, size, what, variant), self.median(other, size, what, variant))

    def per_added(self, contender: str, small: int, large: int, what: str, variant: str = "") -> float:
        """What each further host costs, from the medians of two sizes."""
        more = self.median(contender, large, what, variant) - self.median(contender, small, what, variant)
        return divided(more, large - small)

    def slope(self, contender: str, size: int, what: str, at: dict[str, float]) -> float:
        """The line of least squares through the medians of some variants, each ``at`` its place: its slope."""
        places = list(at.values())
        return statistics.linear_regression(places, [self.median(contender, size, what, one) for one in at]).slope


def spread(values: Iterable[float], what: str) -> Spread:
    """Of some values. Raises ``NotMeasured`` where there are none."""
    ordered = sorted(values)
    if not ordered:
        raise NotMeasured(what)
    return Spread(statistics.median(ordered), ordered[0], ordered[-1], len(ordered))


def divided(value: float, by: float) -> float:
    """A quotient. Raises ``NotMeasured`` where the divisor is zero: too little was measured to compare with."""
    if by == 0:
        raise NotMeasured("nothing to divide by")
    return value / by
