"""Changes that stand alone and failed: what is still to do beside them, and how they are told in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hostwright.common.errors import HostwrightError, SeveralFailed, StepFailed
from hostwright.plan.model import Change, Plan


@dataclass
class AloneFailures:
    """The failures of one host's changes that stand alone: raised when the rest is done, and not tried again."""

    host: str
    errors: list[StepFailed] = field(default_factory=list)

    def beside(self, plan: Plan) -> Plan:
        """The plan without the changes that failed."""
        failed = {(error.step.role, error.step.what) for error in self.errors}
        if not failed:
            return plan
        roles = [
            replace(role, changes=tuple(change for change in role.changes if (role.role, change.what) not in failed))
            for role in plan.roles
        ]
        return replace(plan, roles=tuple(role for role in roles if role.changes))

    def check(self, done: Plan, left: Plan) -> None:
        """Raise what failed, unless a plan holds something to do that was not done before, and needs no reboot."""
        new = any(isinstance(change, Change) and change not in done.changes for change in left.changes)
        if self.errors and (left.reboot or not new):
            self.tell()

    def tell(self, others: Sequence[HostwrightError] = ()) -> None:
        """Raise the failures together with others, if there is any: one as it is, several as ``SeveralFailed``."""
        errors = [*others, *self.errors]
        if len(errors) > 1:
            raise SeveralFailed(self.host, errors)
        for error in errors:
            raise error
