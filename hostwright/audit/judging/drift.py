"""Why a state is not as desired: the host moved (drift), or what is desired did (intent)? Pure.

Puppet keeps the two apart as corrective and intentional changes. Here the host's release record tells: it holds a hash
of each state that was found as desired at the end of the last good run. A record of an earlier Hostwright holds hashes
that nobody can make any more: with it the question has no answer, until a provisioning has written it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hostwright.audit.fleetaudit import ReleaseRecord, Why
from hostwright.plan.desired import DesiredRole
from hostwright.plan.host.newrelease import desired_sha256, state_sha256
from hostwright.plan.model import Resource


@dataclass(frozen=True)
class LastGood:
    """What a role's entry in the release record says of each state."""

    role: DesiredRole
    entry: Mapping[str, Any] | None  #: ``None``: the record does not know the role

    def why(self, resource: Resource | None = None) -> Why:
        """Why this state, which is not as desired, is not; ``None`` for a value of the layer that no state is about.

        A state that was found as desired in the same form has drifted. One that the record does not hold was changed,
        or came, since.
        """
        if self.entry is None:
            return "new"
        if "desired" not in self.entry:
            return "differs"
        if self.entry["desired"] == desired_sha256(self.role):
            return "drift"
        states = self.entry.get("states")
        if resource is None or not isinstance(states, list):  # a record of before states were kept
            return "intent"
        return "drift" if state_sha256(resource) in states else "intent"


def last_good(role: DesiredRole, record: Mapping[str, Any]) -> LastGood:
    """What the record says of a role; an entry that is none is the same as none."""
    entry = record.get("roles", {}).get(role.name)
    return LastGood(role, entry if isinstance(entry, dict) else None)


def shown(record: Mapping[str, Any]) -> ReleaseRecord | None:
    """The record's head for reports."""
    if not record:
        return None
    return ReleaseRecord(*(str(record.get(key, "")) for key in ("stack", "at", "run", "operator")))
