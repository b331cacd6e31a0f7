"""One day of a fleet's history, as charts want it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """How the fleet was on one day (ISO date, UTC): hosts by status, and by each value of a reading.

    ``versions`` has a reading's "layer name" → value → hosts. A day without an audit has no point.
    """

    day: str
    counts: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
