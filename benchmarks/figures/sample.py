"""Sample of the benchmark: the cost of one run of one command."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """Cost of one run of a command. ``None`` means that a value was not measured."""

    contender: str  #: name of the measured tool in ``docs/performance.md``
    size: int  #: number of measured hosts, or of other objects that the case measures
    variant: str  #: condition of the measurement, such as ``80 ms``; empty: the usual condition
    round: int  #: index of the repetition of the measurement, from 0
    wall_s: float
    cpu_s: float  #: user and system seconds of all processes of the controller
    rss_bytes: int | None = None  #: maximum total memory of the controller's processes, sampled every 50 ms
    processes: int | None = None  #: number of the controller's processes at the time of ``rss_bytes``
    sent_bytes: int | None = None  #: number of bytes in Ethernet frames that the controller sent
    received_bytes: int | None = None
    sent_packets: int | None = None
    received_packets: int | None = None
    extra: dict[str, float] = field(default_factory=dict)  #: name → additional value that only this case has

    def to_json(self) -> dict[str, Any]:
        """Return the sample as JSON values, with times rounded to 0.1 ms."""
        values = {name: value for name, value in asdict(self).items() if value not in (None, {}, "")}
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Sample:
        """Parse the output of ``Sample.to_json``. Raises ``ValueError`` for an unknown field."""
        unknown = values.keys() - {one.name for one in fields(cls)}
        if unknown:
            raise ValueError(f"a sample has no {', '.join(sorted(unknown))}")
        return cls(**{"variant": "", **values})
