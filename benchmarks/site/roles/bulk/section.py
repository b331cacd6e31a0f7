"""Stack section of the role ``bulk``. The section names the large file."""

from __future__ import annotations

from typing import Annotated

from hostwright.roles import ArtifactName, Section


class BulkSection(Section):
    """Stack section that names one large file (``artifact``)."""

    artifact: Annotated[str, ArtifactName]
