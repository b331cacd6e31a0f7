"""Peers: hosts whose figures should be equal, because the same model of device made them. Pure statistics.

The middle of the peers is their median, and their spread the median absolute deviation (MAD) from it, times 1.4826: for
a normal distribution that is its standard deviation. Neither moves when a few hosts are slow, as mean and standard
deviation would (Leys et al., Journal of Experimental Social Psychology 49, 2013, 764-766). Half of the hosts must be
sound for that. One that is slow in a fleet that is slow is not found: a baseline, or a vendor's figure, finds it.

Deviations are those of the logarithms. On the plain scale no host can lose more than the whole median: in a fleet whose
sound hosts differ by 20 %, five standard deviations are more than that, and one at a fifteenth of the others' speed
would be no outlier. As a factor, fifteen is far from all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

FEWEST = 4  #: hosts: of three, two slow ones would make the third an outlier
#: of a normal distribution, standard deviation over MAD: 1 / the normal quantile of 3/4
SIGMA_OF_MAD = 1.4826
SIGMAS = 5.0  #: how far from the median, in standard deviations
#: and how far as a part of the median, since the spread of few hosts is itself uncertain. Counted with 24 hosts and 3 %
#: of noise: with 0.10 there is one false alarm in 550 comparisons, with 0.15 one in 200,000, and no host that is slower
#: by 20 % is missed for it. Found then: one slower by 15 % in 38 % of all comparisons, by 20 % in 91 %, by 30 % in
#: 99.9 %, by 40 % always; of only 4 hosts, one slower by 30 % in 91 %, by 40 % in 99 %
LEAST_PART = 0.15


@dataclass(frozen=True, slots=True)
class Outlier:
    """A host that is worse than its peers."""

    host: str
    value: float
    median: float  #: of all the peers, itself among them
    sigma: float  #: the spread of the peers: the standard deviation of their logarithms, or a part of the median
    peers: int  #: how many were compared

    @property
    def part(self) -> float:
        """By what part of the median it is worse: 0.25 for three quarters of the others' throughput."""
        return abs(self.value - self.median) / abs(self.median) if self.median else math.inf


def outliers(values: Mapping[str, float], better: Literal["more", "less"]) -> tuple[Outlier, ...]:
    """The hosts that are worse than the others: beyond both ``SIGMAS`` and ``LEAST_PART``, the worst first.

    ``values`` is one figure for each host; those that are no finite number do not count. Fewer than ``FEWEST`` hosts
    are not compared. A host that is better than the others is none. Where the median is zero or below it, there are no
    factors, and the plain deviations are compared.

    >>> outliers({"gpu01": 100.0, "gpu02": 101.0, "gpu03": 99.0, "gpu04": 60.0}, "more")[0].host
    'gpu04'
    """
    known = {host: value for host, value in values.items() if math.isfinite(value)}
    if len(known) < FEWEST:
        return ()
    middle = median(known.values())
    sign = 1.0 if better == "less" else -1.0
    behind = {host: sign * _deviation(value, middle) for host, value in known.items()}
    sigma = SIGMA_OF_MAD * median(map(abs, behind.values()))
    found = [
        Outlier(host, known[host], middle, sigma, len(known))
        for host, deviation in behind.items()
        if deviation > SIGMAS * sigma and sign * (known[host] - middle) > LEAST_PART * abs(middle)
    ]
    return tuple(sorted(found, key=lambda outlier: (-sign * outlier.value, outlier.host)))


def _deviation(value: float, middle: float) -> float:
    """How far a value is from the middle: the logarithm of their quotient, which for a few percent is the part."""
    if middle <= 0:
        return value - middle
    return math.log(value / middle) if value > 0 else -math.inf
