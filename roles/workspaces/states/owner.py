"""Whose files and processes are: the ids of the inventory, or of the host's account of the person's name, and a
directory for people's files alone."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Facts, Planned, Probe, Refusal, Resource
from hostwright.roles import sh, short, whole
from hostwright.standard.roles.workspaces.declared.workspace import Workspace

FIRST = 1000  #: ids below are the system's
LAST = 2**31 - 2  #: as for those of the inventory: runc starts nothing with an id of 2**31 and more


def _account(key: object) -> Probe:
    return Probe(sh("getent passwd -- %s", key))


def owner_probes(space: Workspace) -> tuple[Probe, ...]:
    """Whose the name is on the host, or whose the uid."""
    return (_account(space.owner if space.user.uid is None else space.user.uid),)


def owner_of(space: Workspace, facts: Facts) -> tuple[int, int] | str:
    """The uid and gid of a workspace's processes and files, or the sentence that says why it has none."""
    name, uid, gid = _entry(facts[owner_probes(space)[0]].strip())
    if space.user.uid is None:
        if uid is None or gid is None:
            return (
                f"{space.owner} has no uid in workspaces_users and no account on this host: give a uid "
                f"({space.owner}: {{uid: 2001}}), or make the account"
            )
        if uid < FIRST:
            return (
                f"the account {space.owner} is one of the system's (uid {uid}); nobody's workspace runs with its rights"
            )
        return _sound(space, uid, gid)
    if name and name != space.owner:
        return (
            f"uid {space.user.uid}, which workspaces_users gives {space.owner}, is {name}'s on this host, who would "
            "have the files: give another"
        )
    return _sound(space, space.user.uid, space.user.gid if space.user.gid is not None else gid or space.user.uid)


def _sound(space: Workspace, uid: int, gid: int) -> tuple[int, int] | str:
    """The ids, if a container can run with them."""
    if max(uid, gid) <= LAST:
        return uid, gid
    return (
        f"{space.owner} has uid {uid} and gid {gid} on this host, and no container runs with an id above {LAST}: give "
        f"the account others, or both in workspaces_users ({space.owner}: {{uid: 2001, gid: 2001}})"
    )


def _entry(line: str) -> tuple[str, int | None, int | None]:
    parts = line.split(":")
    uid, gid = map(whole, parts[2:4]) if len(parts) >= 4 else (None, None)
    return ("", None, None) if uid is None or gid is None else (parts[0], uid, gid)


#: of what a directory holds, where nothing in it is one that Hostwright made for a person: one name
_FOREIGN = (
    "cd -- %s 2>/dev/null || exit 0; "
    '[ -n "$(find . -mindepth 1 -maxdepth 1 -type d -uid 0 -perm 711 -printf 1 -quit)" ] || '
    "find . -mindepth 1 -maxdepth 1 ! -name lost+found -printf '%%f\\n' -quit"
)


@dataclass(frozen=True, slots=True)
class PeoplesFiles(Resource):
    """A directory that is empty, not there yet, or has directories of people already."""

    directory: str

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh(_FOREIGN, self.directory), root=True),)

    def plan(self, facts: Facts) -> Planned | None:
        held = short(facts[self.probes()[0]].strip())
        if not held:
            return None
        sentence = (
            f"workspaces_directory: {self.directory} has {held!r} and nothing of workspaces: name a directory for "
            f"people's files alone, such as {self.directory}/workspaces"
        )
        return Refusal(
            f"directory {self.directory}", f"has {held}", "of people's files alone", "workspace-files", sentence
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()  # people's files stay
