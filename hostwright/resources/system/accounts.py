"""System accounts for services."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.system.services_gone import UserGone


@dataclass(frozen=True, slots=True)
class SystemUser(Resource):
    """An account for a service exists, without password, shell and home directory.

    An existing account is not changed. When the role is removed, the account and its group are removed, unless they
    existed before Hostwright's first change.

    >>> print(plan_text(SystemUser("metrics", "reads the host's metrics")))
    ~ user metrics: absent → a system account
    """

    name: str  #: name of the account
    comment: str = ""  #: full name of the account's user

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh("getent passwd -- %s", self.name)),)

    def plan(self, facts: Facts) -> Change | None:
        if facts[self.probes()[0]].ok:
            return None
        script = sh(
            "useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin --comment %s -- %s",
            self.comment,
            self.name,
        )
        return Change(f"user {self.name}", ABSENT, "a system account", (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        return (UserGone(self.name),)
