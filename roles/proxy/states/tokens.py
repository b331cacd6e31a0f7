"""Access tokens that nginx checks for web pages without a login, such as TensorBoard's."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Absent, Change, Facts, Planned, Probe, Resource, Step
from hostwright.roles import sh_file
from hostwright.standard.roles.workspaces.declared.workspace import STATE


@dataclass(frozen=True, slots=True)
class PageTokens(Resource):
    r"""``file``, which nginx includes and only root can read, has the access tokens of the workspaces ``names``.

    The host creates each token, which never leaves the host. The user can write the workspace's token file, so nginx
    refuses all access if the file has no valid token.

    >>> from hostwright.plan.testing import plan_text
    >>> print(plan_text(PageTokens("/var/lib/proxy/tokens.conf", ("bob-board",)), {"problems": "absent\n"}))
    ~ tokens /var/lib/proxy/tokens.conf: absent → those of bob-board
    """

    file: str
    names: tuple[str, ...]

    def _script(self) -> str:
        return sh_file(__file__, "sh/tokens.sh", file=self.file, state=STATE, names=self.names)

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(f"{self._script()}problems", root=True),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        problem = answer.strip() if answer.ok else "absent"
        if not problem:
            return None
        want = f"those of {', '.join(self.names)}" if self.names else "empty"
        return Change(f"tokens {self.file}", problem, want, (Step(f"{self._script()}make"),))

    def removal(self) -> tuple[Resource, ...]:
        return (Absent(self.file, "the proxy is removed"),)


@dataclass(frozen=True, slots=True)
class SharedName(Resource):
    """The pages of the users ``people`` share one host name. This state only adds a note to the plan."""

    people: tuple[str, ...]

    def probes(self) -> tuple[Probe, ...]:
        return ()

    def plan(self, _facts: Facts) -> Planned | None:
        return None

    def notes(self, _facts: Facts) -> tuple[str, ...]:
        if len(self.people) < 2:
            return ()
        return (
            f"the pages of {', '.join(self.people)} share one host name, so that a page of one user can act as another"
            " user who opens it while logged in; if these users do not trust each other, set proxy_people_domain",
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()
