"""What a host has of JupyterHub: people's servers and their network. One question, the same to all hosts."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Facts, Probe
from hostwright.roles import sh_file, whole

NETWORK = "hostwright-hub"  #: Docker's name of it, and the bridge's
PREFIX = "hostwright-hub-"  #: of a container's name
IMAGES = "hostwright/jupyterhub"  #: the images that are built for it

HUB_PROBE = Probe(sh_file(__file__, "sh/facts.sh", network=NETWORK, images=IMAGES), root=True, cap_bytes=256 * 1024)


@dataclass(frozen=True, slots=True)
class HubServer:
    """Somebody's Jupyter, as Docker has it. All of it is text of the host."""

    user: str
    port: str
    gpus: tuple[str, ...]  #: UUIDs
    running: bool
    children: int  #: processes that its first one started: kernels and terminals

    @property
    def at_work(self) -> str:
        """Whose work would end with it; empty where nobody works in it."""
        number = f"{self.children} process{'es' if self.children > 1 else ''}"
        return f"the server of {self.user} ({number})" if self.running and self.children else ""


@dataclass(frozen=True, slots=True)
class HubFacts:
    """The answer of a host."""

    docker: str  #: ``absent`` or ``silent``; empty where Docker answered
    servers: tuple[HubServer, ...]
    subnet: str  #: of the network; empty where there is none
    images: tuple[str, ...]  #: that were built for it


def read_hub(facts: Facts) -> HubFacts:
    """The answer to ``HUB_PROBE``. One that is cut off counts as Docker's silence."""
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
