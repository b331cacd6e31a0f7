"""The places of the stack's files on a host, each under its checksum."""

from __future__ import annotations

from hostwright.stack.store.artifacts import AnyArtifact

CACHE = "/var/cache/hostwright/artifacts"


def host_path(artifact: AnyArtifact, cache: str = CACHE) -> str:
    """The path of the artifact on a host. Without a known checksum it has no place, and the path says so."""
    return f"{cache}/{artifact.sha256 or 'unpinned'}/{artifact.file}"
