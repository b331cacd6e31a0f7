"""The number of hosts by status and value on one day, for the charts of a fleet's history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The number of hosts by status, and by value of each reading, on one day (ISO 8601 date, UTC).

    ``versions`` maps a reading ("layer name") to its values, each with its number of hosts.
    """

    day: str
    counts: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
