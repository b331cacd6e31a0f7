"""Who left reaches nothing of theirs any more, also where their work may not be ended yet."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.common.quoting import sh_file
from hostwright.plan.model import Change, Deferred, Facts, Planned, Probe, Resource, Step
from hostwright.standard.roles.workspaces.states.look import LOOK, read_look
from hostwright.standard.roles.workspaces.states.undeclared import told

CUT_OFF = "cut off: open connections end, processes go on until the workspace is removed"


@dataclass(frozen=True, slots=True)
class AccessWithdrawn:
    """No container of these people is in a network, so that their connections and ports are gone.

    What runs in it goes on: nobody's work ends, and so it is never refused. That ends with the container, which
    ``Undeclared`` takes away. The containers of people who have not left keep theirs, also of workspaces that nobody
    declares any more: a name that is missing in a file may be a mistake, and ``left: true`` is said on purpose.
    """

    people: tuple[str, ...]

    def probes(self) -> tuple[Probe, ...]:
        return (LOOK,)

    def plan(self, facts: Facts) -> Planned | None:
        look = read_look(facts)
        if look.docker:
            what = f"access of {', '.join(self.people)}"
            return Deferred(what, look.trouble, CUT_OFF, "Docker answers") if look.docker == "silent" else None
        theirs = [held for held in look.containers if held.user in self.people and held.connected and not held.over]
        if not theirs:
            return None
        what = f"access of {', '.join(sorted({held.user for held in theirs}))}"
        names = sorted({held.workspace for held in theirs})
        have = f"workspace{'s' if len(names) > 1 else ''} {', '.join(names)} on the network"
        containers = [held.name.removeprefix("/") for held in theirs]
        script = told(what) + sh_file(__file__, "sh/network/cutoff.sh", containers=containers)
        return Change(what, have, CUT_OFF, (Step(script, timeout_s=900),), alone=True)

    def removal(self) -> tuple[Resource, ...]:
        return ()  # the containers themselves go
