"""Paths of stacks' files on hosts. Each path contains the file's checksum."""

from __future__ import annotations

from hostwright.stack.store.artifacts import AnyArtifact

CACHE = "/var/cache/hostwright/artifacts"


def host_path(artifact: AnyArtifact, cache: str = CACHE) -> str:
    """Return the path of ``artifact`` on a host, with ``unpinned`` in place of an unknown checksum."""
    return f"{cache}/{artifact.sha256 or 'unpinned'}/{artifact.file}"
