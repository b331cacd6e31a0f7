"""Browser access to workspaces: nginx with TLS, and one path for each workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hostwright.resources import Resource
from hostwright.roles import HostPath, InputError, RoleContext, role
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.workspace import Workspace, workspaces_of

UNIT = "nginx.service"
CONF = "/etc/nginx/conf.d/hostwright-workspaces.conf"
STATE = "/var/lib/hostwright/proxy"  #: directory of the proxy's certificate authority and signed certificate
TOKENS = f"{STATE}/tokens.conf"  #: file with access tokens for workspaces of the kinds in ``GATED``
GATED = ("tensorboard",)  #: workspace kinds whose access tokens nginx checks
SERVED = ("jupyter", *GATED)  #: workspace kinds with a web page
_PEOPLE = "proxy_people_domain"

Listen = Annotated[str, Field(pattern=r"^(([0-9]{1,3}\.){3}[0-9]{1,3}:|\[[0-9a-f:]{2,39}\]:)?[1-9][0-9]{0,4}$")]
#: host name or IP address, in the notation of certificates and of nginx's ``server_name``
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$")]


@dataclass(frozen=True, slots=True)
class Proxy:
    """Variables of the role ``proxy``."""

    #: ports on which nginx listens, or addresses with ports: ``10.0.0.5:443``, ``[::]:443``
    listen: tuple[Listen, ...] = ("443",)
    #: further names and addresses by which browsers reach the host
    names: tuple[Name, ...] = ()
    #: domain whose subdomains serve users' pages, such as https://alice.gpu01.example.org; empty: all pages share one
    #: name. DNS must resolve the subdomains to the host
    people_domain: Name | Annotated[str, Field(pattern="^$")] = ""
    #: path on the host of a certificate with the certificate's chain; empty: the host creates a certificate
    certificate: HostPath | Annotated[str, Field(pattern="^$")] = ""
    key: HostPath | Annotated[str, Field(pattern="^$")] = ""  #: path on the host of the certificate's private key
    #: URL of an ACME directory whose terms you accept, such as https://acme-v02.api.letsencrypt.org/directory. The ACME
    #: server must reach each of ``names`` on port 80
    acme: Annotated[str, Field(pattern=r"^(https://[A-Za-z0-9.:-]{1,253}(/[A-Za-z0-9._~/-]{0,500})?)?$")] = ""
    #: email address for the ACME server's notices, such as of an expiring certificate
    acme_contact: Annotated[str, Field(pattern=r"^([A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,253})?$")] = ""
    #: path on the host of the CA certificate for HTTPS to the ACME server; empty: the host's trust store
    acme_authority: HostPath | Annotated[str, Field(pattern="^$")] = ""
    #: maximum size of an upload through nginx; 0: no limit
    upload: Annotated[str, Field(pattern=r"^[0-9]{1,6}[kmg]?$")] = "1g"

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise ValueError("only one of certificate and key is set; set both or neither")
        if self.acme and self.certificate:
            raise ValueError("both certificate and acme are set; set only one")
        if self.acme and not self.names:
            raise ValueError("acme needs names; list the host names for the certificate")
        if self.acme and (address := next((name for name in self.names if name.replace(".", "").isdigit()), "")):
            raise ValueError(f"acme issues certificates for host names only; remove the address {address} from names")
        if self.people_domain and not self.names:
            raise ValueError("people_domain needs names; list the host's own names")


@role(needs=["workspaces"])
def proxy(v: Proxy, ctx: RoleContext) -> Iterator[Resource]:
    """Path on the host's HTTPS port for each workspace with a web page."""
    from hostwright.standard.roles.proxy.desired import states

    yield from states(v, ctx)


def served(ctx: RoleContext) -> tuple[Workspace, ...]:
    """Return the host's workspaces with a web page, without workspaces of users who left."""
    found = (v for _, v in ctx.roles if isinstance(v, Workspaces))
    spaces = (space for v in found for space in workspaces_of(v.containers, v.users, v.directory, v.ports))
    return tuple(space for space in spaces if space.entry.kind in SERVED)


def names_of_people(v: Proxy, spaces: Sequence[Workspace]) -> dict[str, tuple[Workspace, ...]]:
    """Return host name of a user's pages → the user's workspaces in ``spaces``; empty without ``v.people_domain``.

    Raises ``InputError`` if a host name is invalid, or is one of the host's own names.
    """
    if not v.people_domain:
        return {}
    names: dict[str, tuple[Workspace, ...]] = {}
    for space in spaces:
        name = f"{space.owner}.{v.people_domain}"
        if not re.fullmatch("[a-z0-9]([a-z0-9-]*[a-z0-9])?", space.owner):
            raise InputError(f"{name!r} is not a valid host name; rename {space.owner} in workspaces_users", _PEOPLE)
        if name in map(str.lower, v.names):
            raise InputError(
                f"the host and {space.owner}'s pages have the same name {name!r}; change people_domain, or rename one",
                _PEOPLE,
            )
        names[name] = (*names.get(name, ()), space)
    return names
