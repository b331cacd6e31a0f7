"""What is wrong with what nginx serves for workspaces, and why it does not run where it failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import Units
from hostwright.resources import Probe
from hostwright.roles import sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

UNIT = "nginx.service"
CONF = "/etc/nginx/conf.d/hostwright-workspaces.conf"
UNITS = Units((UNIT,))
SERVED = Probe(sh_file(__file__, "served.sh", conf=CONF), root=True)


def taken(ctx: AuditContext) -> Iterator[str]:
    """nginx.service failed, and its journal names an address that is in use."""
    yield from _why(ctx, "proxy-port-taken")


def without_ipv6(ctx: AuditContext) -> Iterator[str]:
    """nginx.service failed, and its journal says that the host has no IPv6."""
    yield from _why(ctx, "proxy-without-ipv6")


def unusable(ctx: AuditContext) -> Iterator[str]:
    """nginx.service failed, and its journal names a certificate or a key that it cannot use."""
    yield from _why(ctx, "proxy-certificate-unusable")


def ended(ctx: AuditContext) -> Iterator[str]:
    """The certificate that nginx's configuration for workspaces names has ended, or openssl cannot read it."""
    yield from _lines(ctx, "ended")


def ending(ctx: AuditContext) -> Iterator[str]:
    """The certificate that nginx's configuration for workspaces names ends within 14 days."""
    yield from _lines(ctx, "ending")


def without_workspace(ctx: AuditContext) -> Iterator[str]:
    """nginx's configuration leads a path to a port of the loopback on which nothing listens."""
    yield from _lines(ctx, "silent")


def _why(ctx: AuditContext, rule: str) -> Iterator[str]:
    """The line of the failed unit's journal by which a rule is recognised."""
    if UNITS.unit(ctx, UNIT).failed:
        name, line = ctx.named("\n".join(UNITS.journal(ctx, UNIT))) or ("", "")
        if name == rule:
            yield line


def _lines(ctx: AuditContext, word: str) -> Iterator[str]:
    """What the host says of one kind."""
    rows = (line.partition(" ") for line in ctx.text(SERVED).splitlines())
    yield from (rest for first, _, rest in rows if first == word)
