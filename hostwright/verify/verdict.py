"""The result of verifying a host: its differences from the stack, and the result of each check."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.errors import Examination, Finding
from hostwright.plan.model import Plan
from hostwright.plan.planning import HostPlan


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of a layer on a host."""

    role: str  #: role of the check: ``driver`` for the checks in ``test_driver.py``
    check: str  #: name of the test function, with parameters
    sentence: str  #: docstring of the test function, or the name of a function without docstring
    passed: bool
    duration_s: float  #: duration in seconds of the check with its fixtures
    why: str  #: reason why the check did not pass; empty if it passed
    checked: bool = True  #: whether the check was made; if not, the check neither passed nor failed
    finding: Finding | None = None  #: known problem in ``why`` or in the output of the check's commands
    no_gpu: bool = False  #: whether the check was not made because it needs a GPU and the host has none

    @property
    def holds(self) -> bool:
        """Whether the check passed, or was not made because the host lacks the GPU that it needs."""
        return self.passed or self.no_gpu


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying one host. The host passes if nothing differs from the stack and every check passes.

    A check that could not be made has not failed, but the host does not pass. Checks that need a missing GPU do not
    count.
    """

    host_plan: HostPlan
    checks: tuple[Check, ...]
    #: result of searching the host for known problems; ``None`` if no check failed
    examination: Examination | None = None
    took_s: float = 0.0  #: duration in seconds of all checks together, several of which run in parallel

    @property
    def host(self) -> str:
        """The name of the host in the inventory."""
        return self.host_plan.host

    @property
    def plan(self) -> Plan:
        """The changes that would make the host match its stack; empty if nothing differs."""
        return self.host_plan.plan

    @property
    def passed(self) -> bool:
        """Whether nothing differs from the stack and every check passes."""
        return self.plan.empty and all(check.holds for check in self.checks)

    @property
    def failed_checks(self) -> tuple[Check, ...]:
        """The checks that were made and did not pass."""
        return tuple(check for check in self.checks if check.checked and not check.passed)

    @property
    def failed_roles(self) -> tuple[str, ...]:
        """The roles with a state that differs or a check that failed, each once."""
        failed = [check.role for check in self.failed_checks]
        return tuple(dict.fromkeys([role.role for role in self.plan.roles] + failed))

    @property
    def unchecked_roles(self) -> tuple[str, ...]:
        """The roles with a check that could not be made, each once."""
        return tuple(dict.fromkeys(check.role for check in self.checks if not (check.checked or check.no_gpu)))
