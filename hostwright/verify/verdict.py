"""The result of verifying a host: what differs from its stack, and the result of each check."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.errors import Examination, Finding
from hostwright.plan.model import Plan
from hostwright.plan.planning import HostPlan


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of a layer."""

    role: str  #: whose check it is: ``driver`` for those in ``test_driver.py``
    check: str  #: the name of its test, with parameters
    sentence: str  #: what it checks: its docstring, else its name
    passed: bool
    duration_s: float  #: with its fixtures
    why: str  #: why it did not pass, usually the message of its assertion; empty if it passed
    checked: bool = True  #: false where the host could not be asked: the check has then neither passed nor failed
    finding: Finding | None = None  #: the known problem that its commands' output, or ``why``, names
    no_gpu: bool = False  #: it needs a GPU and the host has none: it was not made, and the host passes without it

    @property
    def holds(self) -> bool:
        """Whether it passed, or there is no GPU for it."""
        return self.passed or self.no_gpu


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying one host. It passes if nothing differs from the stack and every check passes.

    A check that could not be made does not fail, but without it the host does not pass. One that needs a GPU neither
    passes nor fails on a host without any.
    """

    host_plan: HostPlan
    checks: tuple[Check, ...]
    examination: Examination | None = None  #: what a host of which a check failed was found to have
    took_s: float = 0.0  #: for all checks, of which several run side by side

    @property
    def host(self) -> str:
        """The inventory's name of the host."""
        return self.host_plan.host

    @property
    def plan(self) -> Plan:
        """What differs from its stack; empty if nothing does."""
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
        """The roles in which something differs or a check fails, each once."""
        failed = [check.role for check in self.failed_checks]
        return tuple(dict.fromkeys([role.role for role in self.plan.roles] + failed))

    @property
    def unchecked_roles(self) -> tuple[str, ...]:
        """The roles of which a check could not be made, each once."""
        return tuple(dict.fromkeys(check.role for check in self.checks if not (check.checked or check.no_gpu)))
