"""Docker network of users' Jupyter servers. The network's first address belongs to the hub."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import ABSENT, Change, Deferred, Facts, Planned, Probe, Refusal, Resource, Step
from hostwright.roles import sh_file
from hostwright.standard.roles.jupyterhub.states.facts import HUB_PROBE, NETWORK, read_hub


@dataclass(frozen=True, slots=True)
class HubNetwork(Resource):
    """Docker has a network with the subnet ``subnet``. Containers in this network cannot connect to each other."""

    subnet: str

    def probes(self) -> tuple[Probe, ...]:
        return (HUB_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_hub(facts)
        what = f"network {NETWORK}"
        if found.subnet == self.subnet:
            return None
        if found.docker:
            return Deferred(what, f"Docker is {found.docker}", self.subnet, "Docker answers")
        running = [server.user for server in found.servers if server.running]
        if found.subnet and running:
            sentence = (
                f"jupyterhub_network changed to {self.subnet}, but the servers of {', '.join(running)} still use "
                f"{found.subnet}; stop these servers on the hub's page, or restore the old value"
            )
            return Refusal(what, found.subnet, self.subnet, "jupyterhub-network", sentence)
        script = sh_file(__file__, "sh/network.sh", network=NETWORK, subnet=self.subnet)
        return Change(what, found.subnet or ABSENT, self.subnet, (Step(script),))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # Docker keeps a network with containers, so ``HubGone`` removes the servers and then the network.
