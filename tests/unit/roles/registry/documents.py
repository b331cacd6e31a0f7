"""Checks of the ``--json`` output of the registry task."""

from __future__ import annotations

from typing_extensions import TypedDict

from tests.unit.support.schemas import Document


class Authority(TypedDict):
    host: str
    registry: str
    file: str
    fingerprint: str
    until: str


DOCUMENTS = {
    "authority": Document("roles", Authority, ("registry.trust",)),
}
