"""Compares hosts with the same model of device (peers), and finds outliers. Pure functions.

The center of the peers is their median. Their spread is the median absolute deviation (MAD) from the median, times
1.4826; in a normal distribution, this is the standard deviation. Median and MAD hardly change if a few hosts are slow
(Leys et al., Journal of Experimental Social Psychology 49, 2013, 764-766). At least half of the hosts must be healthy.
A slow host in a slow fleet is found only by a baseline or a vendor's figure.

Deviations are computed on logarithms, because no host can lose more than the whole median. If healthy hosts differ by
20 %, five standard deviations on the plain scale are more than the median. Even a host with a fifteenth of the speed
would then not be an outlier.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from hostwright.prove.fleetproof import HostProof
from hostwright.prove.judging import each, lost_part, shown
from hostwright.prove.model import Measurement, ProofFinding

FEWEST = 4  #: minimum number of hosts to compare. Among three hosts, two slow ones would make the third an outlier.
SIGMA_OF_MAD = 1.4826  #: factor from median absolute deviation to standard deviation: 1 / (normal quantile of 3/4)
SIGMAS = 5.0  #: minimum distance of an outlier from the median, in standard deviations
#: minimum distance of an outlier from the median, as a fraction of the median. In a simulation with 24 hosts and 3 %
#: noise, 0.15 gives one false alarm in 200,000 comparisons, and 0.10 one in 550. With 0.15, 91 % of the hosts that are
#: 20 % slower are found.
LEAST_PART = 0.15


@dataclass(frozen=True, slots=True)
class Outlier:
    """A host with a figure that is clearly worse than the figures of its peers."""

    host: str
    value: float
    median: float  #: median of the figures of all peers and this host
    sigma: float  #: robust standard deviation of the logarithms of the peers' figures
    peers: int

    @property
    def part(self) -> float:
        """The fraction of the median by which the host is worse: 0.25 at three quarters of the median throughput."""
        return abs(self.value - self.median) / abs(self.median) if self.median else math.inf


def outliers(values: Mapping[str, float], better: Literal["more", "less"]) -> tuple[Outlier, ...]:
    """Return the outliers, the worst host first.

    Outliers are worse than the median by more than ``SIGMAS`` standard deviations and by more than the fraction
    ``LEAST_PART``. ``values`` has one figure per host; infinite and undefined figures are ignored. Fewer than
    ``FEWEST`` hosts are not compared.

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
    """Return the logarithm of ``value / middle``, or the difference if ``middle`` is not positive."""
    if middle <= 0:
        return value - middle
    return math.log(value / middle) if value > 0 else -math.inf


#: number of peers to measure again together with an outlier (our choice). Among three peers, one slow peer does not
#: change the median.
WITNESSES = 3
#: minimum number of peers that must respond when an outlier is measured again. One peer may be slow itself.
FEWEST_WITNESSES = 2
#: explanation in reports of how hosts are compared
STATISTICS = (
    f"hosts with the same model of device, {FEWEST} or more: an outlier is worse than their median by more than "
    f"{SIGMAS:g} standard deviations (of the logarithms: MAD × {SIGMA_OF_MAD}) and {LEAST_PART:.0%} of the median, "
    f"and still {LEAST_PART:.0%} worse than its peers when measured again together with them"
)
#: key of a group of comparable figures: proof, figure, model of device, and rank of the device within its host
_Key = tuple[str, str, str, int]
_Groups = Mapping[_Key, Mapping[str, Measurement]]


def against_peers(hosts: Iterable[HostProof], again: Sequence[Collection[HostProof]] = ()) -> tuple[HostProof, ...]:
    """Add a finding to the results of each host that is an outlier among its peers, the hosts with the same model.

    Several cards in a host are compared by rank: the worst card of each host with the worst card of each peer, the
    second worst with the second worst, and so on. ``again`` are the results of repeated measurements. A host that was
    as good as its peers in a repetition gets a note instead of the finding.
    """
    hosts = tuple(hosts)
    later = [_groups(_passed(host) for host in some) for some in again]
    found: dict[tuple[str, str], list[ProofFinding]] = defaultdict(list)
    for key, group in _groups(hosts).items():
        better = next(iter(group.values())).better
        if not better:
            continue
        worse = outliers({name: one.number for name, one in group.items() if one.number is not None}, better)
        names = {outlier.host for outlier in worse}
        for outlier in worse:
            times = (_alike(key, outlier, some.get(key, {}), names) for some in later)
            finding = next(filter(None, times), None) or _outlier(key, group[outlier.host], outlier)
            found[outlier.host, key[0]].append(finding)
    return tuple(each(host, lambda result, host=host: found.get((host.host, result.proof), ())) for host in hosts)  # type: ignore[misc]


def witnesses(hosts: Iterable[HostProof], doubts: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return the peers to measure again together with outliers, each with the keys of the proofs to repeat.

    For each proof and model of device, these are the ``WITNESSES`` healthy hosts closest to the median. ``doubts`` are
    the keys of the proofs to repeat, by host.
    """
    hosts = tuple(hosts)
    passed = {(host.host, result.proof) for host in hosts for result in host.results if result.outcome == "passed"}
    outlying = {
        (host.host, finding.proof)
        for host in hosts
        for result in host.results
        for finding in result.findings
        if finding.severity == "outlier"
    }
    chosen: dict[tuple[str, str], list[str]] = {}
    for (proof, _, model, _), group in _groups(hosts).items():
        if (proof, model) in chosen or not any(proof in doubts.get(name, ()) for name in group):
            continue
        if not any((name, proof) in outlying for name in group):
            continue
        middle = median(one.number for one in group.values() if one.number is not None)
        sound = [name for name in group if (name, proof) in passed and proof not in doubts.get(name, ())]
        chosen[proof, model] = sorted(sound, key=lambda name: abs((group[name].number or 0.0) - middle))[:WITNESSES]
    beside: dict[str, dict[str, None]] = defaultdict(dict)
    for (proof, _), names in chosen.items():
        for name in names:
            beside[name][proof] = None
    return {name: tuple(proofs) for name, proofs in beside.items()}


def _groups(hosts: Iterable[HostProof]) -> _Groups:
    groups: dict[_Key, dict[str, Measurement]] = defaultdict(dict)
    for host in hosts:
        for key, one in _ranked(host):
            groups[key][host.host] = one
    return groups


def _passed(host: HostProof) -> HostProof:
    return replace(host, results=tuple(result for result in host.results if result.outcome == "passed"))


def _alike(
    key: _Key, outlier: Outlier, measured: Mapping[str, Measurement], worse: Collection[str]
) -> ProofFinding | None:
    own = measured.get(outlier.host)
    others = [one.number for name, one in measured.items() if name not in worse and one.number is not None]
    if own is None or own.number is None or len(others) < FEWEST_WITNESSES:
        return None
    middle = median(others)
    if lost_part(own.number, middle, own.better) > LEAST_PART:
        return None
    now, theirs = shown(own.number, own.unit), shown(middle, own.unit)
    sentence = (
        f"{own.name} on {own.device} is {outlier.part:.0%} worse than the median of {outlier.peers} hosts. "
        f"Measured again: {now}; median of {len(others)} of these hosts: {theirs}"
    )
    return ProofFinding(sentence, own.device, "note", now, theirs, key[0])


def _ranked(host: HostProof) -> Iterator[tuple[_Key, Measurement]]:
    alike: dict[tuple[str, str, str], list[Measurement]] = defaultdict(list)
    for result in host.results:
        for one in result.measurements:
            if one.compared:
                alike[result.proof, one.name, one.model].append(one)
    for key, several in alike.items():
        worst_first = sorted(several, key=lambda one: one.number or 0.0, reverse=several[0].better == "less")
        yield from (((*key, rank), one) for rank, one in enumerate(worst_first))


def _outlier(key: _Key, one: Measurement, outlier: Outlier) -> ProofFinding:
    proof, _, model, _ = key
    sentence = (
        f"{one.name} on {one.device} is {outlier.part:.0%} worse than the median of {outlier.peers} hosts with "
        f"{model}. Measured: {shown(outlier.value, one.unit)}; median: {shown(outlier.median, one.unit)}"
    )
    expected = f"{shown(outlier.median, one.unit)} ± {outlier.sigma:.0%}"
    return ProofFinding(sentence, one.device, "outlier", shown(outlier.value, one.unit), expected, proof)
