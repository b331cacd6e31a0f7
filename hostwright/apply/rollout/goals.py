"""What a run wants of each of its hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.member import Member
from hostwright.plan.model import Resource
from hostwright.stack.stack import Artifact


class Goal(Protocol):
    """What is wanted of each host of a run."""

    def desired(self, member: Member) -> Desired:
        """What the host shall be. Raises ``HostError`` for one that is not to be touched."""
        ...

    def departs(self, member: Member) -> bool:
        """Whether what Hostwright keeps on the host goes as well (``Settings.depart``)."""
        ...


class AsWanted:
    """Every host shall be what its stack and its roles want."""

    def desired(self, member: Member) -> Desired:
        """All states of the host's roles."""
        return member.desired

    def departs(self, member: Member) -> bool:  # noqa: ARG002 - of no host
        """What Hostwright keeps on a host stays there."""
        return False


AS_WANTED: Goal = AsWanted()


@dataclass(frozen=True)
class OnlyStates:
    """Every host shall have these states of one role, and nothing else of it changes: for a role's own verbs."""

    role: str
    states: tuple[Resource, ...]
    artifacts: Mapping[str, Artifact] = field(default_factory=dict)  #: files of the stack for this run

    def desired(self, member: Member) -> Desired:
        """These states alone, with a stack that has their files."""
        stack = member.stack.model_copy(update={"artifacts": {**member.stack.artifacts, **self.artifacts}})
        return Desired(
            member.name, stack, (DesiredRole(self.role, (), self.states),), apart=True, occupancy=member.occupancy
        )

    def departs(self, member: Member) -> bool:  # noqa: ARG002 - of no host
        """What Hostwright keeps on a host stays there."""
        return False
