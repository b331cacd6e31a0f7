"""The part of a stack that names the file."""

from __future__ import annotations

from typing import Annotated

from hostwright.stack.stack import Section
from hostwright.stack.stackvalues import ArtifactName


class BulkSection(Section):
    """One large file."""

    artifact: Annotated[str, ArtifactName]
