"""What one run of one command cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. A value that this machine could not measure is ``None``."""

    contender: str  #: what ran, as the page names it
    size: int  #: how many hosts, or whatever the case counts
    variant: str  #: under which condition (``80 ms``); empty: the usual one
    round: int  #: from 0
    wall_s: float
    cpu_s: float  #: user and system time of all processes of the controller
    rss_bytes: int | None = None  #: the highest sum over the controller's processes, looked at every 50 ms
    processes: int | None = None  #: how many those were, just then
    sent_bytes: int | None = None  #: of Ethernet frames that the controller sent
    received_bytes: int | None = None
    sent_packets: int | None = None
    received_packets: int | None = None
    extra: dict[str, float] = field(default_factory=dict)  #: further values that only this case has

    def to_json(self) -> dict[str, Any]:
        """As it is kept: without what was not measured, times rounded to 0.1 ms."""
        values = {name: value for name, value in asdict(self).items() if value not in (None, {}, "")}
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Sample:
        """What ``to_json`` wrote. Raises ``ValueError`` for anything else."""
        unknown = values.keys() - {one.name for one in fields(cls)}
        if unknown:
            raise ValueError(f"a sample has no {', '.join(sorted(unknown))}")
        return cls(**{"variant": "", **values})
