"""TLS certificate from an ACME authority, obtained by the program dehydrated and renewed by a timer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.resources import Debs, Directory, File, Resource, Service
from hostwright.roles import RoleContext, sh_file
from hostwright.standard.roles.driver.states.gpu_use import reloading
from hostwright.standard.roles.proxy.states.acme import AcmeCertificate

if TYPE_CHECKING:
    from hostwright.standard.roles.proxy import Proxy

#: directory of dehydrated's account, certificates and challenges
DIRECTORY = "/var/lib/hostwright/proxy/acme"
CERTIFICATE = f"{DIRECTORY}/acme.pem"
CONF = "/etc/nginx/conf.d/hostwright-acme.conf"
PROGRAM = "/usr/local/lib/hostwright/proxy-acme"
UNITS, SERVICE, TIMER = "/etc/systemd/system", "hostwright-acme.service", "hostwright-acme.timer"


def acme_states(v: Proxy, ctx: RoleContext) -> Iterator[Resource]:
    """Yield the states that obtain and renew the proxy's certificate, with ``AcmeCertificate`` last."""
    yield Debs(("dehydrated",))
    yield Directory(DIRECTORY)
    yield Directory(f"{DIRECTORY}/challenges")
    ipv6 = any(address.startswith("[") for address in v.listen)
    yield File(CONF, ctx.render("proxy/acme.conf.j2", names=v.names, directory=DIRECTORY, ipv6=ipv6))
    yield File(f"{DIRECTORY}/config", ctx.render("proxy/acme_config.j2", v=v, directory=DIRECTORY))
    yield File(f"{DIRECTORY}/domains.txt", f"{' '.join(v.names)} > host\n")
    program = sh_file(__file__, "acme.sh", directory=DIRECTORY, file=CERTIFICATE)
    yield File(PROGRAM, f"#!/bin/sh\nset -eu\n{program}", mode="755", check="sh -n %s")
    for unit in (SERVICE, TIMER):
        text = ctx.render(f"proxy/{unit}.j2", program=PROGRAM)
        yield reloading(File(f"{UNITS}/{unit}", text, then=("systemctl daemon-reload",)))
    yield reloading(Service(TIMER))
    yield AcmeCertificate(CERTIFICATE, v.names, PROGRAM)
