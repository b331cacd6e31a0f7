"""The results of proofs as values, of one host and of the fleet. Reports, history and exit status use nothing else.

Every string that came from a host is untrusted text: whoever prints it passes it through ``common.text.printable`` or
the escaping of their own format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hostwright.prove.model import ProofResult

#: of everything below as JSON; removing a field or changing its meaning raises it, a new field or outcome does not
SCHEMA = 1

#: failed: a proof failed, or a figure is worse than that of peers or than the host's baseline · not proved: nothing
#: failed, but a proof was not run · no GPU: nothing failed, and nothing was proved but that there is no GPU
HostStatus = Literal["unread", "failed", "not proved", "no GPU", "passed"]

#: in the order in which hosts are shown
WORST_FIRST: tuple[HostStatus, ...] = ("failed", "unread", "not proved", "no GPU", "passed")


@dataclass(frozen=True, slots=True)
class HostProof:
    """What was proved of one host. ``at`` is when it began (UTC, ISO 8601).

    ``sentence`` says why nothing could be proved, and is empty otherwise.
    """

    host: str
    stack: str
    at: str
    sentence: str = ""
    results: tuple[ProofResult, ...] = ()
    processor: str = ""
    notes: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()  #: files of its stack that are not the vendor's own
    lead: str = ""  #: of a host that could not be read: the verb that leads on (``HostwrightError.lead``)

    @property
    def status(self) -> HostStatus:
        """The host's worst result."""
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
    """What was proved of many hosts. ``at`` is when it began (UTC, ISO 8601), ``statistics`` how peers are compared."""

    at: str
    inventory: str
    level: str  #: quick or full
    hosts: tuple[HostProof, ...]
    statistics: str = ""
    took_s: float = 0.0
    run: str = ""
    schema: int = SCHEMA
