"""Containers that have no usable name server, because the host's own list of servers is of no use to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign
from hostwright.resources import DPKG, Probe
from hostwright.standard.roles.container.engine import NAME_SERVERS_SH
from hostwright.standard.roles.container.failures.state import engine_package

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

NAME_SERVERS = Probe(f"{NAME_SERVERS_SH}name_servers_lost", root=True)


def no_server(ctx: AuditContext) -> Iterator[str]:
    """Docker has no name servers of its own (``dns``), and the file from which it takes the host's is missing, names
    none, or names only loopback addresses on which nothing listens.
    """
    if engine_package(ctx):
        yield from ctx.text(NAME_SERVERS).splitlines()


NAME_RULES = (
    FailureRule(
        "container-name-servers",
        r"this host's containers have no usable name server",
        "containers have no usable name server: the file from which Docker takes the host's is missing, names none, or"
        " names only a loopback address on which nothing listens",
        "Mend the file (where systemd-resolved runs, resolvectl status tells its servers, and resolvectl dns sets"
        ' them), or name servers for containers alone: "dns": ["10.0.0.2"] in /etc/docker/daemon.json; then restart'
        " Docker, as containers keep what they were started with",
        "moby/moby#6388, #49665; moby libnetwork/resolvconf",
        sign=Sign("container", no_server, (DPKG, NAME_SERVERS), grave=False),
        treatment=ForPeople(),
        transient=False,
    ),
)
