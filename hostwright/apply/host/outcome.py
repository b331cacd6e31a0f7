"""The outcome of a run on one host, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostwright.common.errors import Acceptance
    from hostwright.plan.model import Plan, RoleResult


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run on one host: the first plan, the results of all roles, and the remaining differences."""

    host: str
    plan: Plan
    results: tuple[RoleResult, ...] = ()
    left: Plan | None = None  #: plan with the remaining differences; ``None`` before anything was applied
    reboots: int = 0
    acceptance: tuple[Acceptance, ...] = ()  #: results of the additional checks by ``HostJob.accept``

    @property
    def changed(self) -> bool:
        """Whether the run changed or rebooted the host."""
        return bool(self.results or self.reboots)

    @property
    def word(self) -> str:
        """The member of ``events.RESULTS`` that describes this outcome."""
        if self.left is not None and not self.left.empty:
            return "pending"
        return "changed" if self.changed else "as desired"
