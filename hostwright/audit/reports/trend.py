"""One day of a fleet's history, for the charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The fleet on one day (ISO date, UTC): the number of hosts by status, and by each value of a reading.

    ``versions`` maps a reading ("layer name") to its values and their number of hosts. Days without an audit have no
    point.
    """

    day: str
    counts: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
