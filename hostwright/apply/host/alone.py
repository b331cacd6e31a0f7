"""Failures of changes marked ``alone``. Such a failure does not stop the other changes of the host."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hostwright.common.errors import HostwrightError, Refused, SeveralFailed, StepFailed, Stopped, Unreachable
from hostwright.plan.model import Change, Plan, Refusal


@dataclass
class AloneFailures:
    """The failures of those changes of one host that are marked ``alone`` (``model.Change``).

    The failures are raised after the remaining work. A failed change is not tried a second time.
    """

    host: str
    errors: list[StepFailed] = field(default_factory=list)
    refused: tuple[str, ...] = ()  #: texts of all refusals in the latest plan

    def note(self, plan: Plan) -> Plan:
        """Store the refusals that ``plan`` contains, and return ``plan``."""
        refusals = (planned.sentence for planned in plan.changes if isinstance(planned, Refusal))
        self.refused = tuple(dict.fromkeys(refusals))
        return plan

    def beside(self, plan: Plan) -> Plan:
        """Return ``plan`` without the changes that have failed before."""
        failed = {(error.step.role, error.step.what) for error in self.errors}
        if not failed:
            return plan
        roles = [
            replace(role, changes=tuple(change for change in role.changes if (role.role, change.what) not in failed))
            for role in plan.roles
        ]
        return replace(plan, roles=tuple(role for role in roles if role.changes))

    def check(self, done: Plan, left: Plan) -> None:
        """Raise the first failure if ``left`` needs a reboot or has no change that ``done`` lacks.

        ``done`` is the plan that was applied; ``left`` is the plan made afterwards.
        """
        new = any(isinstance(change, Change) and change not in done.changes for change in left.changes)
        if self.errors and (left.reboot or not new):
            raise self.errors[0]

    def complete(self, error: HostwrightError) -> HostwrightError:
        """Return the final error of a host: ``error``, or ``SeveralFailed`` if further changes failed or were refused.

        If no change failed, ``error`` is returned unchanged for a refusal, a stop or a lost connection.
        """
        if not self.errors and isinstance(error, Refused | Stopped | Unreachable):
            return error
        parts = list(error.errors) if isinstance(error, SeveralFailed) else [error]
        parts += [failed for failed in self.errors if failed not in parts]
        text = str(error)
        parts += [Refused(self.host, sentence) for sentence in self.refused if sentence not in text]
        told = len(error.errors) if isinstance(error, SeveralFailed) else 1
        return SeveralFailed(self.host, parts) if len(parts) > told else error
