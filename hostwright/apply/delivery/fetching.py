"""The host fetches a file of the stack from its vendor for itself (``artifacts: direct`` in the inventory)."""

from __future__ import annotations

from hostwright.common.errors import ArtifactError
from hostwright.common.quoting import sh_file
from hostwright.stack.store.artifacts import AnyArtifact
from hostwright.stack.store.hostcache import CACHE


def web_urls(artifact: AnyArtifact) -> list[str]:
    """The URLs of a file from which a host can fetch it by itself."""
    return [url for url in artifact.urls if url.startswith(("http://", "https://"))]


def fetch_script(artifact: AnyArtifact, cache: str = CACHE) -> str:
    """A root program by which the host fetches the file from the first of its http(s) URLs that gives it.

    It can be run again after any interruption, and exits with 1 where no URL gave the file with its sum. Raises
    ``ArtifactError`` for a file without a checksum or such a URL.
    """
    urls = web_urls(artifact)
    if artifact.sha256 is None or not urls:
        missing = "checksum" if urls else "http(s) URL"
        raise ArtifactError(
            f"{artifact.name}: {artifact.file} has no {missing}, so that no host can fetch it for itself"
        )
    folder = f"{cache}/{artifact.sha256}"
    return sh_file(__file__, "fetch.sh", folder=folder, file=artifact.file, sum=artifact.sha256, urls=urls)
