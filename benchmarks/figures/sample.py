"""Cost of one run of one command."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """Cost of one run. A value that this machine could not measure is ``None``."""

    contender: str  #: name of the contender on the page
    size: int  #: number of hosts, or of other units of the case
    variant: str  #: condition of the run (``80 ms``); empty: the usual one
    round: int  #: number of the round, from 0
    wall_s: float
    cpu_s: float  #: user and system time of all processes of the controller
    rss_bytes: int | None = None  #: maximum memory of all processes of the controller together, sampled every 50 ms
    processes: int | None = None  #: number of processes when that maximum was sampled
    sent_bytes: int | None = None  #: bytes of Ethernet frames that the controller sent
    received_bytes: int | None = None
    sent_packets: int | None = None
    received_packets: int | None = None
    extra: dict[str, float] = field(default_factory=dict)  #: name → additional value that only this case has

    def to_json(self) -> dict[str, Any]:
        """Return the sample as JSON values: without unmeasured values, times rounded to 0.1 ms."""
        values = {name: value for name, value in asdict(self).items() if value not in (None, {}, "")}
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Sample:
        """Parse the output of ``to_json``. Raises ``ValueError`` for an unknown field."""
        unknown = values.keys() - {one.name for one in fields(cls)}
        if unknown:
            raise ValueError(f"a sample has no {', '.join(sorted(unknown))}")
        return cls(**{"variant": "", **values})
