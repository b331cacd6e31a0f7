"""Where the stack's files lie on a host, each under its checksum."""

from __future__ import annotations

from hostwright.stack.store.artifacts import AnyArtifact

CACHE = "/var/cache/hostwright/artifacts"


def host_path(artifact: AnyArtifact, cache: str = CACHE) -> str:
    """Where the artifact lies on a host; a file whose checksum is not known yet cannot lie anywhere, and that shows."""
    return f"{cache}/{artifact.sha256 or 'unpinned'}/{artifact.file}"
