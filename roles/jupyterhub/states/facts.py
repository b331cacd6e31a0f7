"""State of JupyterHub on a host, read with one probe: users' Jupyter servers, network and images."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Facts, Probe
from hostwright.roles import sh_file, whole

NETWORK = "hostwright-hub"  #: name of the hub's Docker network, and of the network's bridge
PREFIX = "hostwright-hub-"  #: name prefix of users' containers
IMAGES = "hostwright/jupyterhub"  #: repository of the images built for the hub

HUB_PROBE = Probe(sh_file(__file__, "sh/facts.sh", network=NETWORK, images=IMAGES), root=True, cap_bytes=256 * 1024)


@dataclass(frozen=True, slots=True)
class HubServer:
    """Jupyter server of a user in Docker. All values come from the host unchecked."""

    user: str
    port: str
    gpus: tuple[str, ...]  #: UUIDs of the Jupyter server's GPUs
    running: bool
    children: int  #: number of kernels and terminals, which are child processes of the container's first process

    @property
    def at_work(self) -> str:
        """Description of the server with its number of kernels and terminals; empty without kernels and terminals."""
        number = f"{self.children} process{'es' if self.children > 1 else ''}"
        return f"the server of {self.user} ({number})" if self.running and self.children else ""


@dataclass(frozen=True, slots=True)
class HubFacts:
    """State of JupyterHub on a host, parsed from the output of ``HUB_PROBE``."""

    docker: str  #: state of Docker: ``absent``, or ``silent`` (not responding); empty if Docker responded
    servers: tuple[HubServer, ...]
    subnet: str  #: subnet of the hub's Docker network; empty if the network does not exist
    images: tuple[str, ...]


def read_hub(facts: Facts) -> HubFacts:
    """Parse the output of ``HUB_PROBE``. If the output is truncated, the state of Docker is ``silent``."""
    answer = facts[HUB_PROBE]
    lines = [line.split("\t") for line in answer.text.splitlines()]
    complete = answer.ok and not answer.truncated and lines[-1:] == [["end"]]
    docker = next((line[1] for line in lines if line[0] == "docker" and len(line) == 2), "")
    children = {line[1]: whole(line[2]) or 0 for line in lines if line[0] == "children" and len(line) == 3}
    servers = (
        HubServer(
            line[1], line[2], tuple(filter(None, line[3].split(","))), line[4] == "running", children.get(line[5], 0)
        )
        for line in lines
        if line[0] == "server" and len(line) == 6
    )
    return HubFacts(
        docker or ("" if complete else "silent"),
        tuple(servers),
        next((line[1] for line in lines if line[0] == "network" and len(line) == 2), ""),
        tuple(line[1] for line in lines if line[0] == "image" and len(line) == 2),
    )
