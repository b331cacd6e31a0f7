"""Value types of a rebuild: ways, phases, outcomes, and the record of one rebuild."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AwareDatetime, Field

#: Ways to rebuild a host. nothing: the host is as desired, only return it to service · repair: provision the
#: differences · relayer: remove all layers in reverse order and provision them again · power cycle: cut and restore the
#: power, or reboot · power on · reinstall: install a new operating system · trust: record the new host key ·
#: hand over: lock the host for people, mostly because of broken hardware
Way = Literal["nothing", "repair", "relayer", "power cycle", "power on", "reinstall", "trust", "hand over"]
#: ways that the option ``--from`` accepts, the least invasive first
Start = Literal["repair", "relayer", "reinstall"]
Phase = Literal["diagnose", "drain", "power", "reboot", "install", "remove", "provision", "verify", "prove", "undrain"]
Outcome = Literal["rebuilt", "as desired", "failed", "handed over"]

WAYS: tuple[Way, ...] = get_args(Way)
STARTS: tuple[Start, ...] = get_args(Start)
PHASES: tuple[Phase, ...] = get_args(Phase)  #: all phases, in the order of a rebuild
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

TARGET_S = 600.0  #: target for the duration of a rebuild, in seconds

_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Record of one rebuild of one host. ``at`` is its start (aware; UTC by convention).

    ``ways`` are the ways that were carried out, in order, and ``reasons`` the sentences that explain them. ``rules``
    are the names of the rules that yielded the reasons; later rebuilds compare them to find a recurring failure.
    ``sentence`` describes the outcome. ``phases`` are pairs of phase and seconds. ``total_s`` is the time from the
    first diagnosis to the end, without the wait until the rebuilds of other hosts were complete.
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
        """The ways in one text, such as ``power cycle + repair``."""
        return " + ".join(self.ways) or "nothing"
