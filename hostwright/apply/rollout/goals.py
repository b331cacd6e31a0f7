"""What a run wants of each of its hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Resource
from hostwright.plan.targets import TargetHost
from hostwright.stack.stack import Artifact


class Goal(Protocol):
    """What is wanted of each host of a run."""

    def desired(self, target: TargetHost) -> Desired:
        """What the host shall be. Raises ``HostError`` for one that is not to be touched."""

    def departs(self, target: TargetHost) -> bool:
        """Whether what Hostwright keeps on the host goes as well (``HostJob.departs``)."""


class AsWanted:
    """Every host shall be what its stack and its roles want."""

    def desired(self, target: TargetHost) -> Desired:
        """All states of the host's roles."""
        return target.desired

    def departs(self, target: TargetHost) -> bool:  # noqa: ARG002 - of no host
        """What Hostwright keeps on a host stays there."""
        return False


AS_WANTED: Goal = AsWanted()


@dataclass(frozen=True)
class OnlyStates:
    """Every host shall have these states of one role, and nothing else of it changes: for a role's own verbs."""

    role: str
    states: tuple[Resource, ...]
    artifacts: Mapping[str, Artifact] = field(default_factory=dict)  #: files of the stack for this run

    def desired(self, target: TargetHost) -> Desired:
        """These states alone, with a stack that has their files."""
        stack = target.stack.model_copy(update={"artifacts": {**target.stack.artifacts, **self.artifacts}})
        return Desired(
            target.name, stack, (DesiredRole(self.role, (), self.states),), apart=True, occupancy=target.occupancy
        )

    def departs(self, target: TargetHost) -> bool:  # noqa: ARG002 - of no host
        """What Hostwright keeps on a host stays there."""
        return False
