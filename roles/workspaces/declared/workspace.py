"""Checked workspaces of a host, each with all values that the inventory determines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from hostwright.standard.roles.workspaces.declared.promises import (
    Entries,
    PortRange,
    Wrong,
    over_limits,
    person_of,
    ports_of,
    uids_given_twice,
    wrong_together,
)

STATE = "/var/lib/hostwright/workspaces"
#: path of the program on the host that runs a batch workspace
BATCH = "/usr/local/lib/hostwright/workspace-batch"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Declared workspace of a host, after the checks."""

    name: str
    entry: WorkspaceEntry
    user: WorkspaceUser
    port: int  #: TCP port on the host's loopback interface; 0: no port
    directory: str  #: path of the workspace's files on the host

    @property
    def owner(self) -> str:
        """Name of the user who owns the workspace."""
        return self.entry.user

    @property
    def path(self) -> str:
        """Path in the URL of the workspace's page or model."""
        if self.entry.kind == "serving":
            return f"/v1/models/{self.name}"
        return f"/{self.owner}/{self.name}/"

    @property
    def state(self) -> str:
        """Path of root's directory on the host for the workspace's definition, token and other files."""
        return f"{STATE}/{self.name}"


def checked_together(entries: Entries, info: ValidationInfo) -> Entries:
    """Check workspaces of a host for conflicts and exceeded limits.

    Raises ``ValidationError`` with all errors, each with the name of its workspace.
    """
    needed = ("users", "ports", "per_user", "per_host")
    if any(name not in info.data for name in needed):
        return entries  # pydantic already reports the invalid field
    _refuse("workspaces", _mistakes(entries, info.data))
    return entries


def checked_people(users: Mapping[str, WorkspaceUser]) -> Mapping[str, WorkspaceUser]:
    """Check that no two users have the same uid. Raises ``ValidationError`` with all errors, each with the name of its
    user.
    """
    _refuse("workspaces_users", uids_given_twice(users))
    return users


def _refuse(title: str, mistakes: Iterator[Wrong]) -> None:
    details = [
        InitErrorDetails(
            type=PydanticCustomError("value_error", "{error}", {"error": sentence}), loc=(name,), input=None
        )
        for name, sentence in mistakes
    ]
    if details:
        raise ValidationError.from_exception_data(title, details)


def _mistakes(entries: Entries, data: Mapping[str, object]) -> Iterator[Wrong]:
    users, ports, per_user, per_host = (data[name] for name in ("users", "ports", "per_user", "per_host"))
    yield from wrong_together(entries, users)  # type: ignore[arg-type]  # pydantic's data has no types
    yield from over_limits(entries, per_user, per_host)  # type: ignore[arg-type]
    try:
        ports_of(entries, PortRange.read(str(ports)))
    except ValueError as error:
        yield max(entries), str(error)


def workspaces_of(
    entries: Entries, users: Mapping[str, WorkspaceUser], directory: str, ports: str, image: str = ""
) -> tuple[Workspace, ...]:
    """Return the host's workspaces ordered by name, without workspaces of users who left. ``image``: the default
    image.
    """
    numbers = ports_of(entries, PortRange.read(ports))
    people = {name: person_of(entry, users) or users[entry.user] for name, entry in entries.items()}
    return tuple(
        Workspace(
            name,
            replace(entry, image=entry.image or image),
            people[name],
            numbers.get(name, 0),
            f"{directory}/{entry.user}/{name}",
        )
        for name, entry in sorted(entries.items())
        if not people[name].left
    )
