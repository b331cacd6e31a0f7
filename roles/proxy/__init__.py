"""The way to workspaces from a browser: nginx, a path for each, TLS."""

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
STATE = "/var/lib/hostwright/proxy"  #: our own authority and the certificate that it signed
TOKENS = f"{STATE}/tokens.conf"  #: those of workspaces for which nginx asks
GATED = ("tensorboard",)  #: the kinds with a page that asks for no token, so that nginx does
SERVED = ("jupyter", *GATED)  #: the kinds with a page
_PEOPLE = "proxy_people_domain"

Listen = Annotated[str, Field(pattern=r"^(([0-9]{1,3}\.){3}[0-9]{1,3}:|\[[0-9a-f:]{2,39}\]:)?[1-9][0-9]{0,4}$")]
#: of a host or an address, as a certificate and nginx's ``server_name`` hold it
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$")]


@dataclass(frozen=True, slots=True)
class Proxy:
    """Variables of the role ``proxy``."""

    listen: tuple[Listen, ...] = ("443",)  #: ports, or addresses with ports: ``10.0.0.5:443``, ``[::]:443``
    #: names and addresses under which browsers reach the host, beside those that it knows itself
    names: tuple[Name, ...] = ()
    #: people's pages are at PERSON.DOMAIN, so that browsers keep them apart: gpu01.example.org makes
    #: https://alice.gpu01.example.org of it. DNS must lead these names to the host; empty: all pages have one name
    people_domain: Name | Annotated[str, Field(pattern="^$")] = ""
    #: a file on the host with a certificate and those that lead to its authority; empty: one of the host's own
    certificate: HostPath | Annotated[str, Field(pattern="^$")] = ""
    key: HostPath | Annotated[str, Field(pattern="^$")] = ""  #: the file on the host with the certificate's key
    #: the address of an ACME authority's directory, such as https://acme-v02.api.letsencrypt.org/directory; whoever
    #: sets it accepts that authority's terms. It gives a certificate for ``names`` if it reaches each on port 80
    acme: Annotated[str, Field(pattern=r"^(https://[A-Za-z0-9.:-]{1,253}(/[A-Za-z0-9._~/-]{0,500})?)?$")] = ""
    #: where the authority writes to, such as before a certificate ends
    acme_contact: Annotated[str, Field(pattern=r"^([A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,253})?$")] = ""
    #: a file on the host with the authority that signed the ACME authority's own HTTPS; empty: those that it trusts
    acme_authority: HostPath | Annotated[str, Field(pattern="^$")] = ""
    upload: Annotated[str, Field(pattern=r"^[0-9]{1,6}[kmg]?$")] = "1g"  #: the largest upload; 0: without a limit

    def __post_init__(self) -> None:
        if bool(self.certificate) != bool(self.key):
            raise ValueError("certificate and key belong together: give both, or neither")
        if self.acme and self.certificate:
            raise ValueError("certificate and acme exclude each other: give one of them")
        if self.acme and not self.names:
            raise ValueError("acme needs names: those for which the authority shall give a certificate")
        if self.acme and (address := next((name for name in self.names if name.replace(".", "").isdigit()), "")):
            raise ValueError(f"acme gives certificates for names, and {address} is an address")
        if self.people_domain and not self.names:
            raise ValueError("people_domain needs names: those of the host itself, which are no person's")


@role(needs=["workspaces"])
def proxy(v: Proxy, ctx: RoleContext) -> Iterator[Resource]:
    """Each workspace with a page has its path on the host's HTTPS port."""
    from hostwright.standard.roles.proxy.desired import states

    yield from states(v, ctx)


def served(ctx: RoleContext) -> tuple[Workspace, ...]:
    """The workspaces of the host that have a path, without those of people who left."""
    found = (v for _, v in ctx.roles if isinstance(v, Workspaces))
    spaces = (space for v in found for space in workspaces_of(v.containers, v.users, v.directory, v.ports))
    return tuple(space for space in spaces if space.entry.kind in SERVED)


def names_of_people(v: Proxy, spaces: Sequence[Workspace]) -> dict[str, tuple[Workspace, ...]]:
    """The name of each person's pages, with the pages; empty where all have the host's own. Raises ``InputError``."""
    if not v.people_domain:
        return {}
    names: dict[str, tuple[Workspace, ...]] = {}
    for space in spaces:
        name = f"{space.owner}.{v.people_domain}"
        if not re.fullmatch("[a-z0-9]([a-z0-9-]*[a-z0-9])?", space.owner):
            raise InputError(
                f"{name!r} is not a host name: give {space.owner} another name in workspaces_users", _PEOPLE
            )
        if name in map(str.lower, v.names):
            raise InputError(f"{name!r} is a name of the host, and would be that of {space.owner}'s pages", _PEOPLE)
        names[name] = (*names.get(name, ()), space)
    return names
