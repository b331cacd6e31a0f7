"""The result of verifying a host: differences from its stack, and the result of each check."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.errors import Examination, Finding
from hostwright.plan.model import Plan
from hostwright.plan.planning import HostPlan


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of a layer."""

    role: str  #: role of the check: ``driver`` for checks in ``test_driver.py``
    check: str  #: name of the test, with parameters
    sentence: str  #: description: the docstring of the test, else its name
    passed: bool
    duration_s: float  #: including fixtures
    why: str  #: reason for not passing, usually the message of an assertion; empty if passed
    checked: bool = True  #: false if the host did not respond: the check has then neither passed nor failed
    finding: Finding | None = None  #: known problem in the output of its commands, or in ``why``
    #: the check needs a GPU and the host has none: it was not made, and the host passes without it
    no_gpu: bool = False

    @property
    def holds(self) -> bool:
        """Whether the check passed, or needs a GPU that the host does not have."""
        return self.passed or self.no_gpu


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying one host. It passes if nothing differs from the stack and every check passes.

    If a check could not be made, it has not failed, but the host does not pass. On a host without a GPU, checks that
    need a GPU neither pass nor fail, and the host passes without them.
    """

    host_plan: HostPlan
    checks: tuple[Check, ...]
    examination: Examination | None = None  #: known problems of the host, if a check failed
    took_s: float = 0.0  #: for all checks, several of which run in parallel

    @property
    def host(self) -> str:
        """The host's name in the inventory."""
        return self.host_plan.host

    @property
    def plan(self) -> Plan:
        """The differences from the stack; empty if nothing differs."""
        return self.host_plan.plan

    @property
    def passed(self) -> bool:
        """Whether nothing differs and every check passes."""
        return self.plan.empty and all(check.holds for check in self.checks)

    @property
    def failed_checks(self) -> tuple[Check, ...]:
        """The checks that were made and failed."""
        return tuple(check for check in self.checks if check.checked and not check.passed)

    @property
    def failed_roles(self) -> tuple[str, ...]:
        """The roles in which something differs or a check failed, each once."""
        failed = [check.role for check in self.failed_checks]
        return tuple(dict.fromkeys([role.role for role in self.plan.roles] + failed))

    @property
    def unchecked_roles(self) -> tuple[str, ...]:
        """The roles with a check that could not be made, each once."""
        return tuple(dict.fromkeys(check.role for check in self.checks if not (check.checked or check.no_gpu)))
