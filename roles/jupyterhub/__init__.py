"""JupyterHub: users log in with their account's password and start a Jupyter server themselves."""

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
HOME = "/opt/hostwright-jupyterhub"
STATE = "/var/lib/hostwright/jupyterhub"  #: directory of the hub's cookie secret, database and files per user
UNIT = "hostwright-jupyterhub.service"
PATH = "/jupyterhub"  #: prefix of the hub's URL paths


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
    """Variables of the role ``jupyterhub``. The users are in ``workspaces_users``."""

    #: base image of users' Jupyter servers; empty: the default image of workspaces. The host adds JupyterHub's packages
    #: to the image
    image: Image = ""
    pull: bool = False  #: true: the host may pull a missing image from a registry
    #: GPUs for users' Jupyter servers, as indexes from ``nvidia-smi -L`` or as UUIDs. Workspaces cannot use these GPUs
    gpus: Gpus = ()
    gpus_each: Annotated[int, Field(ge=1, le=64)] = 1  #: maximum number of GPUs that one user can use at once
    shared: bool = False  #: true: several users can share a GPU
    cpus: Cpus | None = None  #: number of CPUs of each user's Jupyter server; empty: all CPUs of the host
    memory: Size | None = None  #: memory limit of each user's Jupyter server; empty: all memory of the host
    shm: Size = "1g"  #: size of shared memory (/dev/shm) in each user's Jupyter server
    pids: Pids = 4096  #: maximum number of processes and threads in each user's Jupyter server
    admins: tuple[UserName, ...] = ()  #: users who can list and stop the servers of all users
    idle_minutes: Count = 0  #: minutes without activity after which a user's server is stopped; 0: never
    #: range of loopback ports on the host for users' Jupyter servers
    ports: Annotated[str, AfterValidator(_range)] = "30000-32767"
    #: subnet for users' containers, used only inside the host
    network: Annotated[str, AfterValidator(_network)] = "172.30.250.0/24"
    #: TCP port of the hub in the subnet ``network``
    port: Annotated[int, BeforeValidator(decimal), Field(ge=1024, le=65535)] = 8081
    #: source of Python wheels. ``index``: the host's pip index; ``mirror``: only files that the controller sends
    wheels_from: Literal["index", "mirror"] = "index"

    def __post_init__(self) -> None:
        parts = [gpu for gpu in self.gpus if is_mig(gpu)]
        if parts:
            raise ValueError(
                f"{parts[0]} is a MIG device, but jupyterhub_gpus takes only whole GPUs; give a GPU's index or UUID"
            )
        if self.gpus and self.gpus_each > len(self.gpus):
            raise ValueError(
                f"gpus_each is {self.gpus_each}, but the number of GPUs in gpus is only {len(self.gpus)}; lower "
                "gpus_each"
            )

    @property
    def promised_gpus(self) -> tuple[str, ...]:
        """GPUs reserved for users' Jupyter servers and not available to workspaces."""
        return self.gpus

    @property
    def address(self) -> str:
        """IP address at which users' containers reach the hub."""
        return str(IPv4Network(self.network)[1])


@role(needs=["workspaces", "proxy"], short="hub")
def jupyterhub(v: Jupyterhub, ctx: RoleContext) -> Iterator[Resource]:
    """Logins with the host's accounts, and a Jupyter server in a container for each user who starts one."""
    from hostwright.standard.roles.jupyterhub.desired import states

    yield from states(v, ctx)
