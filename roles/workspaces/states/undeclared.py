"""Removal of workspaces that the inventory no longer declares. Users' files are kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from hostwright.resources import ERROR, NO_IDENTITY, Change, Facts, Planned, Probe, Refusal, Resource, Step
from hostwright.roles import sh_file
from hostwright.standard.roles.workspaces.declared.forms import UNATTENDED
from hostwright.standard.roles.workspaces.declared.workspace import STATE
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, WorkspaceFacts, read_workspaces

#: text in the plan for a change that requires ``force``
ENDS_WORK = "ends workspaces in which somebody works"
BUILT = "hostwright/workspace-"


@dataclass(frozen=True, slots=True)
class Undeclared(Resource):
    """The host has no workspace containers outside ``names``, and no Docker networks outside ``networks``."""

    names: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    images: tuple[str, ...] = ()  #: names of images built on the host that the workspaces of the host need
    force: bool = field(default=False, metadata=NO_IDENTITY)  #: whether a change may end a user's work
    removes: bool = field(default=False, metadata=NO_IDENTITY)  #: whether the plan removes the role

    def probes(self) -> tuple[Probe, ...]:
        return (WORKSPACES_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_workspaces(facts)
        gone = sorted({held.workspace for held in found.containers} | set(found.definitions))
        gone = [name for name in gone if name not in self.names]
        networks = [name for name in found.networks if name not in self.networks]
        built = sorted(name for name in found.images if name.startswith(BUILT) and "@" not in name)
        # Containers that will be replaced still use these images.
        used = {held.image for held in found.containers if held.workspace in self.names}
        images = [name for name in built if name not in self.images and found.images[name] not in used]
        left = [*(_whose(found, name) for name in gone), *networks, *images]
        if found.docker or not left:
            return None
        have = ", ".join(left)
        working = [held.at_work for held in found.containers if held.workspace in gone and held.at_work]
        if working and not self.force:
            sentence = (
                f"{', '.join(working)} would be ended: the inventory no longer declares it; wait until nobody "
                "works in it, or pass --force"
            )
            return Refusal(
                "undeclared workspaces", have, "absent", "workspace-in-use", sentence, alone=not self.removes
            )
        script = failing("undeclared workspaces") + sh_file(
            __file__, "sh/remove.sh", names=gone, networks=networks, images=images, state=STATE
        )
        return Change(
            "undeclared workspaces", have, f"absent; people's files stay{_where(found, gone)}",
            (Step(script, timeout_s=900),),
            warnings=_warnings(found, gone), disturbs=ENDS_WORK if working else "",
            alone=not gone,  # other changes may need the GPUs and ports of removed workspaces
        )  # fmt: skip

    def users(self, facts: Facts) -> tuple[str, ...]:
        """Return descriptions of the users' work in workspaces to remove."""
        held = (held for held in read_workspaces(facts).containers if held.workspace not in self.names)
        return tuple(space.at_work for space in held if space.at_work)

    def removal(self) -> tuple[Resource, ...]:
        return (Undeclared(force=self.force, removes=True),) if self.names or self.networks or self.images else ()


def failing(what: str) -> str:
    """Return the first lines of a shell script that reports its failure in one line. ``what``: subject of that line."""
    return sh_file(__file__, "failing.sh", what=what, error=ERROR)


def _whose(found: WorkspaceFacts, name: str) -> str:
    held = found.container(name)
    user = held.user if held is not None else found.definitions.get(name, {}).get("user")
    return f"workspace {name} of {user}" if isinstance(user, str) and user else f"workspace {name}"


def _where(found: WorkspaceFacts, gone: list[str]) -> str:
    folders = [found.definitions.get(name, {}).get("directory") for name in gone]
    named = [folder for folder in folders if isinstance(folder, str) and folder]
    return f" in {', '.join(named)}" if named else " where they are"


def _warnings(found: WorkspaceFacts, gone: list[str]) -> tuple[str, ...]:
    rows = [(name, found.container(name)) for name in gone]
    key = ", and its SSH host key; a new workspace of this name gets another key, and ssh warns"
    return tuple(
        f"workspace {name} of {held.user}: software installed in the container itself is removed with it"
        + (key if held.kind == "ssh" else "")
        for name, held in rows
        if held is not None and held.kind not in UNATTENDED
    )
