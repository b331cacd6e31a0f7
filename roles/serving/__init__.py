"""Models served by TensorFlow Serving in workspaces of the kind ``serving``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import Resource
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.workspace import Workspace, workspaces_of


@dataclass(frozen=True, slots=True)
class Serving:
    """No variables, because workspaces of the kind ``serving`` declare the models."""


@role(needs=["workspaces"])
def serving(v: Serving, ctx: RoleContext) -> Iterator[Resource]:  # noqa: ARG001 - every role has variables
    """Versions of each model that answer requests, and the version with the label ``live``."""
    from hostwright.standard.roles.serving.desired import states

    yield from states(model_servers(ctx))


def model_servers(ctx: RoleContext) -> tuple[Workspace, ...]:
    """Return the host's workspaces that serve a model."""
    held = (v for _, v in ctx.roles if isinstance(v, Workspaces))
    spaces = (space for v in held for space in workspaces_of(v.containers, v.users, v.directory, v.ports))
    return tuple(space for space in spaces if space.entry.kind == "serving")
