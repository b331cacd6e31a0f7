"""Why a state is not as desired: because the host changed (drift), or the desired state did (intent). Pure.

Puppet calls the two corrective and intentional changes. Here the host's release record tells them apart: it holds a
hash of each state that was as desired at the end of the last good run. A record written by an earlier Hostwright holds
hashes that can no longer be computed: then the two cannot be told apart until the next provisioning rewrites the
record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hostwright.audit.fleetaudit import ReleaseRecord, Why
from hostwright.common.canonical import Same
from hostwright.plan.desired import DesiredRole
from hostwright.plan.facts.memory import Memory
from hostwright.plan.host.newrelease import desired_sha256, state_sha256
from hostwright.plan.model import Resource


@dataclass(frozen=True)
class LastGood:
    """A role's entry in the release record."""

    role: DesiredRole
    entry: Mapping[str, Any] | None  #: ``None``: the record has no entry for the role
    memory: Memory = field(default_factory=Memory)  #: of the run: a role's states are hashed once

    def why(self, resource: Resource | None = None) -> Why:
        """Why this state is not as desired; without ``resource``, why a value of the layer differs that no state
        covers.

        A state that the record holds in the same form has drifted. One that it does not hold was changed or added
        since.
        """
        if self.entry is None:
            return "new"
        if "desired" not in self.entry:
            return "differs"
        known = self.memory.kept("hashes", Same(self.role), lambda: Hashes(self.role))
        if self.entry["desired"] == known.role:
            return "drift"
        states = self.entry.get("states")
        if resource is None or not isinstance(states, list):  # a record from before states were recorded
            return "intent"
        return "drift" if known.of(resource) in states else "intent"


class Hashes:
    """The hashes of a role's states, as release records hold them; each is made when it is first asked for."""

    def __init__(self, role: DesiredRole):
        self._role, self._states = role, dict[Same[Resource], str]()

    @cached_property
    def role(self) -> str:
        """Of all states together."""
        return desired_sha256(self._role)

    def of(self, resource: Resource) -> str:
        """Of one state."""
        key = Same(resource)
        if key not in self._states:
            self._states[key] = state_sha256(resource)
        return self._states[key]


def last_good(role: DesiredRole, record: Mapping[str, Any], memory: Memory | None = None) -> LastGood:
    """The record's entry for a role; a damaged entry counts as none."""
    entry = record.get("roles", {}).get(role.name)
    return LastGood(role, entry if isinstance(entry, dict) else None, memory or Memory())


def shown(record: Mapping[str, Any]) -> ReleaseRecord | None:
    """The head of the record, for reports."""
    if not record:
        return None
    return ReleaseRecord(*(str(record.get(key, "")) for key in ("stack", "at", "run", "operator")))
