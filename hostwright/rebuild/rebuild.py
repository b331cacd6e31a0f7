"""What a rebuild is made of, as values: ways, phases, outcomes, and the record of one rebuild."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AwareDatetime, Field

#: nothing: as desired, only back to service · repair: what differs · relayer: all layers away, in reverse, and laid
#: again · power cycle: power cut and given, or a reboot · power on · reinstall: a new operating system · trust: the
#: new host key, by intent · hand over: to people, mostly for hardware
Way = Literal["nothing", "repair", "relayer", "power cycle", "power on", "reinstall", "trust", "hand over"]
#: what ``--from`` may name, the gentlest first
Start = Literal["repair", "relayer", "reinstall"]
Phase = Literal["diagnose", "drain", "power", "reboot", "install", "remove", "provision", "verify", "prove", "undrain"]
Outcome = Literal["rebuilt", "as desired", "failed", "handed over"]

WAYS: tuple[Way, ...] = get_args(Way)
STARTS: tuple[Start, ...] = get_args(Start)
PHASES: tuple[Phase, ...] = get_args(Phase)  #: in the order in which a rebuild comes to them
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

TARGET_S = 600.0  #: a dead node is back in ten minutes: what the project promises of a rebuild

_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """One rebuild of one host, as it is kept. ``at`` is when it began (aware; UTC by convention).

    ``ways`` are those that were taken, in order, and ``reasons`` the sentences that led to them. ``rules`` are the
    names of the rules behind these: what came before, and whether it is the same again, is told by them. ``sentence``
    says how it ended. ``phases`` are name and seconds, each phase once; ``total_s`` is from the first look to the end,
    without the time in which the host waited for its turn behind others.
    """

    host: str
    run: str
    at: AwareDatetime
    operator: str
    ways: tuple[Way, ...]
    outcome: Outcome
    sentence: str = ""
    reasons: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    phases: tuple[tuple[Phase, _Seconds], ...] = ()
    total_s: _Seconds = 0.0

    @property
    def way(self) -> str:
        """The ways in one text: ``power cycle + repair``."""
        return " + ".join(self.ways) or "nothing"
