"""Image registry on one host for all hosts: Debian's docker-registry, over TLS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from hostwright.resources import Debs, Directory, File, Resource, RestartedAfter, Service
from hostwright.roles import HostPath, RoleContext, role
from hostwright.standard.roles.base.states.certificate import OwnCertificate
from hostwright.standard.roles.driver.states.gpu_use import reloading
from hostwright.standard.roles.registry.authority import authority_of

UNIT = "docker-registry.service"
#: path of the registry's configuration. The package's own configuration requires passwords and has no TLS.
CONF = "/etc/docker/registry/hostwright.yml"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/hostwright.conf"
STATE = "/var/lib/hostwright/registry"  #: directory of the registry's certificate authority and signed certificate
IMAGES = "/var/lib/docker-registry"
ACCOUNT = "docker-registry"

#: host name or IPv4 address with a port. Docker reads a name without dot and port as part of an image's path.
At = Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?:[1-9][0-9]{0,4})?$")]


def _authority(text: str) -> str:
    if text:
        authority_of(text)
    return text


@dataclass(frozen=True, slots=True)
class Registry:
    """Variables of the role ``registry``. Hosts that only pull images need ``at`` and ``authority``."""

    at: At = ""  #: host name and port by which hosts reach the registry, such as ``reg01:5000``
    serve: bool = False  #: true: the registry runs on this host
    #: PEM text of the CA certificate that `invoke registry.trust` writes; empty: the hosts already trust the CA
    authority: Annotated[str, AfterValidator(_authority)] = ""
    directory: HostPath = IMAGES  #: directory of the images on the registry's host
    #: path on the registry's host of a certificate; empty: the host creates a CA and a certificate
    certificate: HostPath | Annotated[str, Field(pattern="^$")] = ""
    #: path on the registry's host of the certificate's private key
    key: HostPath | Annotated[str, Field(pattern="^$")] = ""

    def __post_init__(self) -> None:
        if not self.at and (self.serve or self.authority):
            raise ValueError("`at` is missing; set the registry's name and port, such as reg01:5000")
        if bool(self.certificate) != bool(self.key):
            raise ValueError("only one of certificate and key is set; set both or neither")

    @property
    def name(self) -> str:
        return self.at.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.at.rpartition(":")[2])

    @property
    def image_registry(self) -> str:
        """Name and port of the registry to which `images.push --registry` pushes for this host."""
        return self.at

    @property
    def serves_images(self) -> bool:
        return self.serve

    @property
    def authority_file(self) -> str:
        """Path of the CA certificate that Docker reads at every pull from this registry."""
        return f"/etc/docker/certs.d/{self.at}/ca.crt"


@role(after=["container"], uses=["base", "driver"])
def registry(v: Registry, ctx: RoleContext) -> Iterator[Resource]:
    """Image registry on one host, and its CA certificate on every host."""
    if v.authority:
        yield File(v.authority_file, v.authority)
    if v.serve:
        yield from _served(v, ctx)


def _served(v: Registry, ctx: RoleContext) -> Iterator[Resource]:
    """Configure the registry before the package is installed, because the package would start a service without TLS."""
    inputs: list[Resource] = []
    files = (v.certificate, v.key)
    if not v.certificate:
        own = OwnCertificate(STATE, (v.name,), "registry")
        yield from (Debs(("openssl",)), Directory(STATE), own)
        inputs, files = [own], (own.file, own.file)
    conf = File(CONF, ctx.render("registry/config.yml.j2", v=v))
    yield conf
    text = ctx.render("registry/hostwright.conf.j2", conf=CONF, certificate=files[0], key=files[1], account=ACCOUNT)
    drop_in = File(DROP_IN, text, then=("systemctl daemon-reload",))
    yield reloading(drop_in)
    yield Debs(("docker-registry",))
    if v.directory != IMAGES:
        yield Directory(v.directory, mode="750", owner=f"{ACCOUNT}:{ACCOUNT}")
    yield Service(UNIT)
    yield RestartedAfter(UNIT, (CONF, DROP_IN, *dict.fromkeys(files)), (*inputs, conf, drop_in))
