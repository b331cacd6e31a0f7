"""A registry of images on one host, from which the others pull: Debian's docker-registry, over TLS."""

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
CONF = "/etc/docker/registry/hostwright.yml"  #: beside the package's own, which wants passwords and has no TLS
DROP_IN = f"/etc/systemd/system/{UNIT}.d/hostwright.conf"
STATE = "/var/lib/hostwright/registry"  #: its own authority and the certificate that it signed
IMAGES = "/var/lib/docker-registry"
ACCOUNT = "docker-registry"

#: a name or an IPv4 address with a port, as images are named after it: Docker takes what has no dot and no port for a
#: part of a path
At = Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?:[1-9][0-9]{0,4})?$")]


def _authority(text: str) -> str:
    if text:
        authority_of(text)
    return text


@dataclass(frozen=True, slots=True)
class Registry:
    """Variables of the role ``registry``: ``at`` and ``authority`` for all hosts, ``serve`` for the one that has it."""

    at: At = ""  #: under which name and port the hosts reach it: ``reg01:5000``
    serve: bool = False  #: true: it runs on this host
    #: the certificate of its authority, as text (`invoke registry.trust` writes it); empty: one that hosts know anyway
    authority: Annotated[str, AfterValidator(_authority)] = ""
    directory: HostPath = IMAGES  #: on its host: where the images are
    #: a file on its host; empty: one of its own authority
    certificate: HostPath | Annotated[str, Field(pattern="^$")] = ""
    key: HostPath | Annotated[str, Field(pattern="^$")] = ""  #: the file on its host with the certificate's key

    def __post_init__(self) -> None:
        if not self.at and (self.serve or self.authority):
            raise ValueError("at is missing: say under which name and port hosts reach it, such as reg01:5000")
        if bool(self.certificate) != bool(self.key):
            raise ValueError("certificate and key belong together: give both, or neither")

    @property
    def name(self) -> str:
        """The name or address of its host."""
        return self.at.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self.at.rpartition(":")[2])

    @property
    def image_registry(self) -> str:
        """Where `images.push --registry` puts images for this host (``ImageRegistry`` of the role ``container``)."""
        return self.at

    @property
    def serves_images(self) -> bool:
        """Whether the registry runs on this host."""
        return self.serve

    @property
    def authority_file(self) -> str:
        """Where Docker reads on each host whose certificates this registry may have; it looks at every pull."""
        return f"/etc/docker/certs.d/{self.at}/ca.crt"


@role(after=["container"], uses=["base", "driver"])
def registry(v: Registry, ctx: RoleContext) -> Iterator[Resource]:
    """A host that keeps images for the others, and its authority on each of them."""
    if v.authority:
        yield File(v.authority_file, v.authority)
    if v.serve:
        yield from _served(v, ctx)


def _served(v: Registry, ctx: RoleContext) -> Iterator[Resource]:
    """What the package starts is ours from the first moment: its own configuration would listen without TLS."""
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
