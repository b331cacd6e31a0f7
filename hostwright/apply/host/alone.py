"""Changes that stand alone and failed: what is still to do beside them, and how they are told in the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hostwright.common.errors import HostwrightError, Refused, SeveralFailed, StepFailed, Stopped, Unreachable
from hostwright.plan.model import Change, Plan, Refusal


@dataclass
class AloneFailures:
    """The failures of one host's changes that stand alone: raised when the rest is done, and not tried again."""

    host: str
    errors: list[StepFailed] = field(default_factory=list)
    refused: tuple[str, ...] = ()  #: the sentences of all refusals of the newest plan

    def note(self, plan: Plan) -> Plan:
        """Remember what a plan refuses; the plan."""
        refusals = (planned.sentence for planned in plan.changes if isinstance(planned, Refusal))
        self.refused = tuple(dict.fromkeys(refusals))
        return plan

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
            raise self.errors[0]

    def complete(self, error: HostwrightError) -> HostwrightError:
        """What ended the run of a host, with all that failed or was refused alone: as ``SeveralFailed`` where that is
        more than the error itself tells.

        A run that a refusal, a stop or a lost connection ended, and in which nothing failed, is told as it is.
        """
        if not self.errors and isinstance(error, Refused | Stopped | Unreachable):
            return error
        parts = list(error.errors) if isinstance(error, SeveralFailed) else [error]
        parts += [failed for failed in self.errors if failed not in parts]
        text = str(error)
        parts += [Refused(self.host, sentence) for sentence in self.refused if sentence not in text]
        told = len(error.errors) if isinstance(error, SeveralFailed) else 1
        return SeveralFailed(self.host, parts) if len(parts) > told else error
