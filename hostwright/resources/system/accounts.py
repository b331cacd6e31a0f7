"""System accounts, under which services run."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.system.services_gone import UserGone


@dataclass(frozen=True, slots=True)
class SystemUser(Resource):
    """An account for a service exists: no password, no shell, no home.

    One that exists is left as it is. When the role is removed, the account and the group of its name go if they were
    not there before; where nobody wrote that down, they stay.

    >>> print(plan_text(SystemUser("metrics", "reads the host's metrics")))
    ~ user metrics: absent → a system account
    """

    name: str  #: of the account
    comment: str = ""  #: what ``getent passwd`` shows of it as its full name

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
