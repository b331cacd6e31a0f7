"""Role ``workspaces``: containers in which users work (Jupyter, SSH, TensorBoard, batch runs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from hostwright.resources import Resource
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.workspaces.declared.entries import (
    WorkspaceEntry,
    WorkspaceLimits,
    WorkspaceUser,
    entry_or_nothing,
)
from hostwright.standard.roles.workspaces.declared.forms import (
    Image,
    PeoplesDirectory,
    UserName,
    WorkspaceName,
)
from hostwright.standard.roles.workspaces.declared.promises import PortRange
from hostwright.standard.roles.workspaces.declared.workspace import checked_people, checked_together


def _range(text: str) -> str:
    PortRange.read(text)
    return text


@dataclass(frozen=True, slots=True)
class Workspaces:
    """Variables of the role ``workspaces``, which the role's tasks write to ``inventory/workspaces.yml``."""

    #: users: ``alice: {uid: 2001, keys: [ssh-ed25519 …]}``; without a uid, the user needs an account on the host
    users: Annotated[
        Mapping[UserName, Annotated[WorkspaceUser, BeforeValidator(entry_or_nothing)]],
        BeforeValidator(entry_or_nothing),
        AfterValidator(checked_people),
    ] = field(default_factory=dict)
    directory: PeoplesDirectory = "/srv/workspaces"  #: directory of users' files, in subdirectories USER/WORKSPACE
    #: range of ports for workspaces without a declared port
    ports: Annotated[str, AfterValidator(_range)] = "20000-29999"
    #: date of the package updates in images of ssh workspaces, such as 2026-11-23; a new date rebuilds these images
    refreshed: Annotated[str, Field(pattern=r"^[0-9-]*$")] = ""
    #: image for the proofs of TensorFlow in a container; empty: the TensorFlow image that most workspaces of the host
    #: use, else the default image if this image has TensorFlow
    proved_image: Image | None = None
    #: limits of each user on a host: gpus, cpus, memory, shm, pids, disk, workspaces
    per_user: WorkspaceLimits = field(default_factory=WorkspaceLimits)
    per_host: WorkspaceLimits = field(default_factory=WorkspaceLimits)  #: limits of all workspaces of a host together
    #: workspaces: ``alice-lab: {user: alice, kind: jupyter, gpus: [0], cpus: 8, memory: 64g}``
    containers: Annotated[
        Mapping[WorkspaceName, WorkspaceEntry], BeforeValidator(entry_or_nothing), AfterValidator(checked_together)
    ] = field(default_factory=dict)


@role(needs=["container"], after=["tensorflow"], uses=["tensorflow"], short="ws")
def workspaces(v: Workspaces, ctx: RoleContext) -> Iterator[Resource]:
    """Containers in which users work. Each container has its own GPUs, port, limits and files."""
    from hostwright.standard.roles.workspaces.desired import states

    yield from states(v, ctx)
