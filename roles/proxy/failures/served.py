"""What is wrong with what nginx serves for workspaces, and why it does not run where it failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import Units
from hostwright.resources import Probe
from hostwright.roles import sh_file

if TYPE_CHECKING:
    from hostwright.failures import Look

UNIT = "nginx.service"
CONF = "/etc/nginx/conf.d/hostwright-workspaces.conf"
UNITS = Units((UNIT,))
SERVED = Probe(sh_file(__file__, "served.sh", conf=CONF), root=True)


def taken(look: Look) -> Iterator[str]:
    """nginx.service failed, and its journal names an address that is in use."""
    yield from _why(look, "proxy-port-taken")


def without_ipv6(look: Look) -> Iterator[str]:
    """nginx.service failed, and its journal says that the host has no IPv6."""
    yield from _why(look, "proxy-without-ipv6")


def unusable(look: Look) -> Iterator[str]:
    """nginx.service failed, and its journal names a certificate or a key that it cannot use."""
    yield from _why(look, "proxy-certificate-unusable")


def ended(look: Look) -> Iterator[str]:
    """The certificate that nginx's configuration for workspaces names has ended, or openssl cannot read it."""
    yield from _lines(look, "ended")


def ending(look: Look) -> Iterator[str]:
    """The certificate that nginx's configuration for workspaces names ends within 14 days."""
    yield from _lines(look, "ending")


def without_workspace(look: Look) -> Iterator[str]:
    """nginx's configuration leads a path to a port of the loopback on which nothing listens."""
    yield from _lines(look, "silent")


def _why(look: Look, rule: str) -> Iterator[str]:
    """The line of the failed unit's journal by which a rule is recognised."""
    if UNITS.unit(look, UNIT).failed:
        name, line = look.named("\n".join(UNITS.journal(look, UNIT))) or ("", "")
        if name == rule:
            yield line


def _lines(look: Look, word: str) -> Iterator[str]:
    """What the host says of one kind."""
    rows = (line.partition(" ") for line in look.text(SERVED).splitlines())
    yield from (rest for first, _, rest in rows if first == word)
