"""Dataclasses for the results of proofs, of one host and of all proved hosts.

Every string from a host is untrusted: print it through ``common.text.printable``, or with the escaping of the output
format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hostwright.prove.model import ProofResult

#: version of the JSON format of fleet proofs; increment it if a field is removed or gets another meaning
SCHEMA = 1

#: status of a host after the proofs
#: failed: a proof failed, or a figure is worse than the figures of peers or than the host's baseline
#: not proved: no proof failed, but one or more proofs could not be run
#: no GPU: all proofs need a GPU, and the host has none
HostStatus = Literal["unread", "failed", "not proved", "no GPU", "passed"]

WORST_FIRST: tuple[HostStatus, ...] = ("failed", "unread", "not proved", "no GPU", "passed")


@dataclass(frozen=True, slots=True)
class HostProof:
    """The results of the proofs of one host. The proofs started at the time ``at`` (UTC, ISO 8601).

    ``sentence`` is the error text if no proof could be run, else empty.
    """

    host: str
    stack: str
    at: str
    sentence: str = ""
    results: tuple[ProofResult, ...] = ()
    processor: str = ""
    notes: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()  #: names of files in the stack that do not come from the vendor
    lead: str = ""  #: verb of the command to run next if the host could not be read

    @property
    def status(self) -> HostStatus:
        """The status of the host according to the worst outcome of its proofs."""
        if self.sentence:
            return "unread"
        outcomes = {result.outcome for result in self.results}
        if "failed" in outcomes:
            return "failed"
        if "not run" in outcomes or not outcomes:
            return "not proved"
        return "no GPU" if outcomes == {"no GPU"} else "passed"


@dataclass(frozen=True, slots=True)
class FleetProof:
    """The results of the proofs of many hosts. The proofs started at the time ``at`` (UTC, ISO 8601).

    ``statistics`` is a sentence about how hosts with the same model of device were compared.
    """

    at: str
    inventory: str
    level: str  #: level of the proofs, ``quick`` or ``full``
    hosts: tuple[HostProof, ...]
    statistics: str = ""
    took_s: float = 0.0
    run: str = ""
    schema: int = SCHEMA
