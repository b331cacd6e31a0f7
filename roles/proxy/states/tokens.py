"""What nginx asks of a browser before it lets it to a page that asks for nothing itself, such as TensorBoard's."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Absent, Change, Facts, Planned, Probe, Resource, Step
from hostwright.roles import sh_file
from hostwright.standard.roles.workspaces.declared.workspace import STATE


@dataclass(frozen=True, slots=True)
class PageTokens(Resource):
    r"""nginx knows the tokens of these workspaces: the file that its configuration includes has them, for root alone.

    A workspace's token is made on the host with the workspace, and never leaves it for this. One that is missing, or is
    not what Hostwright makes, lets nobody in: the file of it belongs to the workspace's user, who may write there.

    >>> from hostwright.plan.testing import plan_text
    >>> print(plan_text(PageTokens("/var/lib/proxy/tokens.conf", ("bob-board",)), {"problems": "absent\n"}))
    ~ tokens /var/lib/proxy/tokens.conf: absent → those of bob-board
    """

    file: str
    names: tuple[str, ...]  #: of the workspaces

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
        return (Absent(self.file, "the proxy goes"),)


@dataclass(frozen=True, slots=True)
class SharedName(Resource):
    """The pages of these people have one name: nothing to change, and a note where there are several."""

    people: tuple[str, ...]

    def probes(self) -> tuple[Probe, ...]:
        return ()

    def plan(self, _facts: Facts) -> Planned | None:
        return None

    def notes(self, _facts: Facts) -> tuple[str, ...]:
        """That a browser does not keep them apart."""
        if len(self.people) < 2:
            return ()
        return (
            f"the pages of {', '.join(self.people)} have one name, so that a page of one can act as another who opens "
            "it while logged in; where they do not trust each other, give each a name (proxy_people_domain)",
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()
