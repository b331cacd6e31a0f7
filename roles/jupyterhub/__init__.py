"""JupyterHub: people log in with their account's password and start a Jupyter themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from hostwright.resources import Resource
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.workspaces.declared.forms import Count, Cpus, Image, Pids, Size, UserName, decimal
from hostwright.standard.roles.workspaces.declared.gpus import Gpus, is_mig
from hostwright.standard.roles.workspaces.declared.promises import PortRange

VERSION = "5.5.4"
HOME = "/opt/hostwright-jupyterhub"  #: the link to its environment
STATE = "/var/lib/hostwright/jupyterhub"  #: cookie secret, database, and root's files of each person; root's alone
UNIT = "hostwright-jupyterhub.service"
PATH = "/jupyterhub"  #: its part of a URL


def _range(text: str) -> str:
    PortRange.read(text)
    return text


def _network(text: str) -> str:
    network = IPv4Network(text)
    if not 16 <= network.prefixlen <= 28:
        raise ValueError(f"found {text!r}, expected a network of /16 to /28, such as 172.30.250.0/24")
    return text


@dataclass(frozen=True, slots=True)
class Jupyterhub:
    """Variables of the role ``jupyterhub``. Its people are those of ``workspaces_users``."""

    #: what people's Jupyters are made from; JupyterHub's part is added on the host; empty: as for workspaces
    image: Image = ""
    pull: bool = False  #: true: an image that is not on the host may be pulled from its registry
    gpus: Gpus = ()  #: the hub's share: numbers as ``nvidia-smi -L`` lists them, or UUIDs; no workspace may have them
    gpus_each: Annotated[int, Field(ge=1, le=64)] = 1  #: how many of them a person may take at once
    shared: bool = False  #: true: a GPU of the share may be given to several people at once
    cpus: Cpus | None = None  #: of each person's Jupyter; empty: all of the host's
    memory: Size | None = None  #: of each person's Jupyter; empty: all of the host's
    shm: Size = "1g"  #: shared memory (/dev/shm)
    pids: Pids = 4096  #: processes and threads
    admins: tuple[UserName, ...] = ()  #: people who see and stop the servers of all
    idle_minutes: Count = 0  #: a server without activity for so long is ended; 0: none is
    ports: Annotated[str, AfterValidator(_range)] = "30000-32767"  #: people's, on the host's loopback
    network: Annotated[str, AfterValidator(_network)] = "172.30.250.0/24"  #: of their containers, on the host alone
    port: Annotated[int, BeforeValidator(decimal), Field(ge=1024, le=65535)] = 8081  #: the hub's own, on that network
    #: where pip takes wheels from: index (the one that the host's pip is set to) or mirror (this machine's files alone)
    wheels_from: Literal["index", "mirror"] = "index"

    def __post_init__(self) -> None:
        parts = [gpu for gpu in self.gpus if is_mig(gpu)]
        if parts:
            raise ValueError(f"{parts[0]} is a part of a card; JupyterHub gives out whole cards")
        if self.gpus and self.gpus_each > len(self.gpus):
            raise ValueError(f"gpus_each is {self.gpus_each}, and gpus has {len(self.gpus)}")

    @property
    def promised_gpus(self) -> tuple[str, ...]:
        """What workspaces may not have."""
        return self.gpus

    @property
    def address(self) -> str:
        """The hub's own, which containers reach."""
        return str(IPv4Network(self.network)[1])


@role(needs=["workspaces", "proxy"], short="hub")
def jupyterhub(v: Jupyterhub, ctx: RoleContext) -> Iterator[Resource]:
    """Logins with the host's accounts, and a Jupyter in a container for each person who starts one."""
    from hostwright.standard.roles.jupyterhub.desired import states

    yield from states(v, ctx)
