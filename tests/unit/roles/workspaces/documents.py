"""Checks of the ``--json`` output of the workspace tasks."""

from __future__ import annotations

from typing_extensions import TypedDict

from hostwright.standard.roles.workspaces.verbs.queries import ListedWorkspace
from hostwright.standard.roles.workspaces.verbs.rebuilding import BoxChanges
from tests.unit.support.schemas import Changed, Document, Error


class Workspaces(TypedDict):
    workspaces: list[ListedWorkspace]
    errors: list[Error]


class Boxes(Changed):
    boxes: list[BoxChanges]


class Url(TypedDict):
    host: str
    workspace: str
    lines: list[str]


DOCUMENTS = {
    "workspaces": Document("roles", Workspaces, ("workspace.list",)),
    "url": Document("roles", Url, ("workspace.url",)),
    "boxes": Document("roles", Boxes, ("images.rebuild",)),
}
