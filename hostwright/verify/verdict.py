"""What verifying a host comes to: what differs from its stack, and what became of each check."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.plan.model import Plan
from hostwright.plan.planning import HostPlan


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a layer: what it says, whether it holds, and if not, why."""

    role: str
    check: str
    sentence: str
    passed: bool
    duration_s: float
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """One host verified: what differs from the stack, and every check."""

    host_plan: HostPlan
    checks: tuple[Check, ...]

    @property
    def host(self) -> str:
        """The inventory's name of the host."""
        return self.host_plan.host

    @property
    def plan(self) -> Plan:
        """What differs from its stack."""
        return self.host_plan.plan

    @property
    def passed(self) -> bool:
        """Whether nothing differs and every check holds."""
        return self.plan.empty and all(check.passed for check in self.checks)

    @property
    def failed_roles(self) -> tuple[str, ...]:
        """The layers in which something is wrong, by plan or by check."""
        roles = [role.role for role in self.plan.roles] + [check.role for check in self.checks if not check.passed]
        return tuple(dict.fromkeys(roles))
