"""Tasks ``images.…``. The implementation of a task is imported when the task runs."""

from __future__ import annotations

from invoke import Collection

from hostwright.cli.verb import GRADUAL, LISTED, REACHED, Request, verb


@verb(
    *REACHED,
    "check",
    *GRADUAL,
    archive="file from `docker save`, gzipped or not",
    name="names to set, separated by commas; for an archive of one image, they replace its names: house/tool:1.2",
    registry="send the archive to one host, which pushes it to the registry; the other hosts pull it",
)
def push(request: Request, archive: str = "", name: str = "", registry: bool = False) -> int:
    """Load the images of an archive into the Docker of hosts that lack them.

    hostwright images.push gpu01 gpu02 --archive tool.tar
    """
    from hostwright.standard.roles.container.images import pushing

    return pushing.push(request, archive, name=name, registry=registry)


@verb(
    *LISTED,
    older="report images older than this many days",
    scan="with --no-scan: do not scan for known vulnerabilities with trivy or grype",
)
def audit(request: Request, older: int = 90, scan: bool = True) -> int:
    """Show the images and containers on hosts, with digest and age, and their known vulnerabilities.

    hostwright images.audit gpu01
    """
    from hostwright.standard.roles.container.images import verbs

    return verbs.audit(request, older, scan=scan)


namespace = Collection("images", push, audit)
