"""The goals of runs: the states that their hosts must reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Resource
from hostwright.plan.targets import TargetHost
from hostwright.stack.stack import Artifact


class Goal(Protocol):
    """The goal of a run: the state that each of its hosts must reach."""

    def desired(self, target: TargetHost) -> Desired:
        """Return the desired state of the host ``target``. Raises ``HostError`` if the host must not be changed."""

    def departs(self, target: TargetHost) -> bool:
        """Return whether the run also removes Hostwright's own files from the host (``HostJob.departs``)."""


class AsWanted:
    """The goal that every host matches its stack and its roles; ``provision`` uses it."""

    def desired(self, target: TargetHost) -> Desired:
        """Return the desired state with all states of the host's roles."""
        return target.desired

    def departs(self, target: TargetHost) -> bool:  # noqa: ARG002 - the same for all hosts
        """Return ``False``, because Hostwright's own files stay on the host."""
        return False


AS_WANTED: Goal = AsWanted()


@dataclass(frozen=True)
class OnlyStates:
    """The goal that every host has ``states`` of one role and keeps all other states; verbs of roles use it."""

    role: str
    states: tuple[Resource, ...]
    #: artifact name → file that this run uses in addition to the stack's files
    artifacts: Mapping[str, Artifact] = field(default_factory=dict)

    def desired(self, target: TargetHost) -> Desired:
        """Return the desired state with only these states, and a stack that includes ``artifacts``."""
        stack = target.stack.model_copy(update={"artifacts": {**target.stack.artifacts, **self.artifacts}})
        return Desired(
            target.name, stack, (DesiredRole(self.role, (), self.states),), apart=True, occupancy=target.occupancy
        )

    def departs(self, target: TargetHost) -> bool:  # noqa: ARG002 - the same for all hosts
        """Return ``False``, because Hostwright's own files stay on the host."""
        return False
