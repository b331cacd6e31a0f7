"""User and group IDs of workspaces' files and processes, and the directory for users' files."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Facts, Planned, Probe, Refusal, Resource
from hostwright.roles import sh, short, whole
from hostwright.standard.roles.workspaces.declared.workspace import Workspace

FIRST = 1000  #: lowest user ID of a workspace's owner. Lower IDs belong to the system.
#: highest user ID of a workspace's owner. runc refuses IDs from 2**31 on.
LAST = 2**31 - 2


def _account(key: object) -> Probe:
    return Probe(sh("getent passwd -- %s", key))


def owner_probes(space: Workspace) -> tuple[Probe, ...]:
    """Return the probe for the host's account with the name or uid of the workspace's user."""
    return (_account(space.owner if space.user.uid is None else space.user.uid),)


def owner_of(space: Workspace, facts: Facts) -> tuple[int, int] | str:
    """Return uid and gid of the workspace's processes and files, or the reason to refuse the workspace."""
    name, uid, gid = _entry(facts[owner_probes(space)[0]].strip())
    if space.user.uid is None:
        if uid is None or gid is None:
            return (
                f"{space.owner} has no uid in workspaces_users and no account on this host; give a uid ({space.owner}:"
                f" {{uid: 2001}}), or create the account"
            )
        if uid < FIRST:
            return f"{space.owner} is a system account (uid {uid}), which cannot have workspaces"
        return _sound(space, uid, gid)
    if name and name != space.owner:
        return (
            f"workspaces_users gives uid {space.user.uid} to {space.owner}, but on this host it belongs to "
            f"{name}, who would own the files; give another uid"
        )
    return _sound(space, space.user.uid, space.user.gid if space.user.gid is not None else gid or space.user.uid)


def _sound(space: Workspace, uid: int, gid: int) -> tuple[int, int] | str:
    if max(uid, gid) <= LAST:
        return uid, gid
    return (
        f"{space.owner} has uid {uid} and gid {gid} on this host, but a container cannot use an ID above "
        f"{LAST}; change the account's IDs, or set both in workspaces_users ({space.owner}: {{uid: 2001, "
        "gid: 2001})"
    )


def _entry(line: str) -> tuple[str, int | None, int | None]:
    parts = line.split(":")
    uid, gid = map(whole, parts[2:4]) if len(parts) >= 4 else (None, None)
    return ("", None, None) if uid is None or gid is None else (parts[0], uid, gid)


#: probe that prints one entry of a directory, if the directory has entries but no user directory of Hostwright
_FOREIGN = (
    "cd -- %s 2>/dev/null || exit 0; "
    '[ -n "$(find . -mindepth 1 -maxdepth 1 -type d -uid 0 -perm 711 -printf 1 -quit)" ] || '
    "find . -mindepth 1 -maxdepth 1 ! -name lost+found -printf '%%f\\n' -quit"
)


@dataclass(frozen=True, slots=True)
class PeoplesFiles(Resource):
    """The directory ``directory`` for users' files is missing, empty, or already has users' directories."""

    directory: str

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh(_FOREIGN, self.directory), root=True),)

    def plan(self, facts: Facts) -> Planned | None:
        held = short(facts[self.probes()[0]].strip())
        if not held:
            return None
        sentence = (
            f"workspaces_directory: {self.directory} has {held!r} but no workspaces; choose a directory that "
            f"is only for users' files, such as {self.directory}/workspaces"
        )
        return Refusal(f"directory {self.directory}", f"has {held}", "only users' files", "workspace-files", sentence)

    def removal(self) -> tuple[Resource, ...]:
        return ()  # the removal keeps users' files
