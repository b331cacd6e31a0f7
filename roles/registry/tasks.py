"""Task ``registry.trust``. The implementation is imported when the task runs."""

from __future__ import annotations

from invoke import Collection

from hostwright.cli.verb import OF_ONE, Request, verb


@verb(*OF_ONE, host="the host that has the registry")
def trust(request: Request) -> int:
    """Read a registry's CA certificate from its host, and write it to the inventory for all hosts that pull from it.

    hostwright registry.trust gpu01
    """
    from hostwright.standard.roles.registry import trusting

    return trusting.trust(request)


namespace = Collection("registry", trust)
