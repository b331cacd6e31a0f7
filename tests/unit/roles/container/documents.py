"""Checks of the ``--json`` output of the image tasks."""

from __future__ import annotations

from typing_extensions import TypedDict

from hostwright.standard.roles.container.images.scanning import Scan
from hostwright.standard.roles.container.images.verbs import FoundImage
from tests.unit.support.schemas import Document, Error, fields

Image = TypedDict("Image", {**fields(FoundImage), "old": bool, "scan": Scan | None})


class Images(TypedDict):
    images: list[Image]
    notes: list[str]
    errors: list[Error]


DOCUMENTS = {
    "images": Document("roles", Images, ("images.audit",)),
}
