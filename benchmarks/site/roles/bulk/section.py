"""Section of a stack with the file."""

from __future__ import annotations

from typing import Annotated

from hostwright.roles import ArtifactName, Section


class BulkSection(Section):
    """One large file."""

    artifact: Annotated[str, ArtifactName]
