"""Paths of the stack's files on a host, by checksum."""

from __future__ import annotations

from hostwright.stack.store.artifacts import AnyArtifact

CACHE = "/var/cache/hostwright/artifacts"


def host_path(artifact: AnyArtifact, cache: str = CACHE) -> str:
    """The path of an artifact on a host; contains ``unpinned`` if its checksum is unknown."""
    return f"{cache}/{artifact.sha256 or 'unpinned'}/{artifact.file}"
