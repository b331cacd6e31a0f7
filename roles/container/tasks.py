"""The verbs ``images.…``. What they need is imported when one is run."""

from __future__ import annotations

from invoke import Collection

from hostwright.cli.verb import GRADUAL, LISTED, REACHED, Request, verb


@verb(
    *REACHED,
    "check",
    *GRADUAL,
    archive="a file of `docker save`, gzipped or not",
    name="names that it shall give, with commas; of one image, instead of those that it has there: house/tool:1.2",
    registry="send it to one host, which puts it into the registry of these hosts; the others fetch it there",
)
def push(request: Request, archive: str = "", name: str = "", registry: bool = False) -> int:
    """Bring the images of an archive to the Docker of hosts that lack them.

    hostwright images.push gpu01 gpu02 --archive tool.tar
    """
    from hostwright.standard.roles.container.images import pushing

    return pushing.push(request, archive, name=name, registry=registry)


@verb(
    *LISTED,
    older="note images that are older than this many days",
    scan="with --no-scan: do not look for known vulnerabilities where trivy or grype is at hand",
)
def audit(request: Request, older: int = 90, scan: bool = True) -> int:
    """Show which images and containers hosts have, by digest and age, and their known vulnerabilities.

    hostwright images.audit gpu01
    """
    from hostwright.standard.roles.container.images import verbs

    return verbs.audit(request, older, scan=scan)


namespace = Collection("images", push, audit)
