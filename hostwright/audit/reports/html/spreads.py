"""The values that no stack defines, compared between hosts, with the hosts that differ from the majority.

All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hostwright.audit.fleetaudit import ValueSpread
from hostwright.audit.reports.html.text import first, folded, line, name

VALUES = 8  #: maximum number of values to list of one reading
BUTTONS = 12  #: maximum number of hosts with the same value that get a button each


@dataclass(frozen=True, slots=True)
class ValueShare:
    """One value of a reading, and the hosts that have this value.

    ``share`` is the percentage of these hosts; ``openable`` are pairs of a host's index in the page's data and the
    host's name.
    """

    value: str
    hosts: int
    share: float
    start: float
    names: str
    role: str  #: CSS class of the value: ``majority``, ``outlier`` or empty
    openable: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The values of one reading on all comparable hosts."""

    layer: str
    reading: str
    among: str
    shares: tuple[ValueShare, ...]
    hosts: int
    outliers: int
    more_values: int = 0


def comparisons(spreads: Iterable[ValueSpread], order: Sequence[str]) -> list[Comparison]:
    """Return the readings that have different values on different hosts.

    Readings with a majority and few outliers come first, since few outliers are probably mistakes.
    """
    places = {host: place for place, host in enumerate(order)}
    compared = [_comparison(spread, places) for spread in spreads if len(spread.values) > 1]
    return sorted(
        compared,
        key=lambda comparison: (not comparison.outliers, comparison.outliers, comparison.layer, comparison.reading),
    )


def alike(spreads: Iterable[ValueSpread]) -> list[tuple[str, str, str, int]]:
    """Return the readings with the same value on all hosts.

    Each entry has the name of the reading, the property ``among`` of the hosts, the value, and the number of hosts.
    """
    return [
        (f"{name(spread.layer)} {name(spread.name)}", name(spread.among), line(value) or "nothing", len(hosts))
        for spread in spreads
        if len(spread.values) == 1
        for value, hosts in spread.values
    ]


def _comparison(spread: ValueSpread, places: Mapping[str, int]) -> Comparison:
    total = sum(len(hosts) for _, hosts in spread.values)
    shown, more = first(spread.values, VALUES)
    shares: list[ValueShare] = []
    start = 0.0
    for value, hosts in shown:
        share = 100 * len(hosts) / total if total else 0.0
        major = bool(spread.majority) and value == spread.majority
        role = "majority" if major else "outlier" if spread.majority else ""
        openable = () if major else _openable(hosts, places)
        shares.append(ValueShare(line(value) or "nothing", len(hosts), share, start, folded(hosts), role, openable))
        start += share
    return Comparison(
        name(spread.layer), name(spread.name), name(spread.among), tuple(shares), total, len(spread.outliers), more
    )


def _openable(hosts: Sequence[str], places: Mapping[str, int]) -> tuple[tuple[int, str], ...]:
    return tuple((places[host], name(host)) for host in hosts if host in places) if len(hosts) <= BUTTONS else ()
