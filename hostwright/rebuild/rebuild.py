"""Value types of a rebuild: methods (``Way``), phases, outcomes, and the record of one rebuild."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AwareDatetime, Field

#: Methods to rebuild a host. nothing: return the host to service · repair: provision the differences · relayer: remove
#: all layers and provision them again · reinstall: install a new operating system · trust: record the new host key ·
#: hand over: lock the host for people
Way = Literal["nothing", "repair", "relayer", "power cycle", "power on", "reinstall", "trust", "hand over"]
#: methods that the option ``--from`` accepts, least disruptive first
Start = Literal["repair", "relayer", "reinstall"]
Phase = Literal["diagnose", "drain", "power", "reboot", "install", "remove", "provision", "verify", "prove", "undrain"]
Outcome = Literal["rebuilt", "as desired", "failed", "handed over"]

WAYS: tuple[Way, ...] = get_args(Way)
STARTS: tuple[Start, ...] = get_args(Start)
PHASES: tuple[Phase, ...] = get_args(Phase)  #: names of all phases, in the order of a rebuild
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

TARGET_S = 600.0  #: target duration of a rebuild in seconds

_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Record of one rebuild of one host. ``at`` is the time of its start (with a time zone).

    ``ways`` are the methods that were carried out, in order, and ``reasons`` the sentences that explain them. ``rules``
    are the names of the rules behind the reasons. ``sentence`` describes the outcome. ``phases`` are pairs of phase and
    seconds. ``total_s`` are the seconds from the first diagnosis to the end, without the wait for other hosts.
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
        """The methods in one text, such as ``power cycle + repair``."""
        return " + ".join(self.ways) or "nothing"
