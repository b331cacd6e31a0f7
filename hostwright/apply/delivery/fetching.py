"""Lets a host fetch a file from the file's vendor (``artifacts: direct`` in the inventory)."""

from __future__ import annotations

from hostwright.common.errors import ArtifactError
from hostwright.common.quoting import sh_file
from hostwright.stack.store.artifacts import AnyArtifact
from hostwright.stack.store.hostcache import CACHE


def web_urls(artifact: AnyArtifact) -> list[str]:
    """Return the URLs of ``artifact`` that use HTTP or HTTPS. Hosts cannot fetch from other URLs."""
    return [url for url in artifact.urls if url.startswith(("http://", "https://"))]


def fetch_script(artifact: AnyArtifact, cache: str = CACHE) -> str:
    """Return a shell program for root that fetches ``artifact`` from the first http(s) URL that works.

    The program exits with 1 if no URL provided a file with the right checksum. Raises ``ArtifactError`` for a file that
    has no checksum or no http(s) URL.
    """
    urls = web_urls(artifact)
    if artifact.sha256 is None or not urls:
        missing = "checksum" if urls else "http(s) URL"
        raise ArtifactError(
            f"{artifact.name}: {artifact.file} has no {missing}, so hosts cannot fetch it from the vendor"
        )
    folder = f"{cache}/{artifact.sha256}"
    return sh_file(__file__, "fetch.sh", folder=folder, file=artifact.file, sum=artifact.sha256, urls=urls)
