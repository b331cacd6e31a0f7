"""Checks of the ``--json`` output of the model tasks."""

from __future__ import annotations

from typing_extensions import TypedDict

from hostwright.standard.roles.serving.verbs.queries import ListedModel
from tests.unit.support.schemas import Document, Error


class Models(TypedDict):
    models: list[ListedModel]
    errors: list[Error]


DOCUMENTS = {
    "models": Document("roles", Models, ("serve.list",)),
}
