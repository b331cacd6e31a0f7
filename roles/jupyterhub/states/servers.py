"""State of users' Jupyter servers: servers that may keep running, and removal of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hostwright.resources import NO_IDENTITY, Change, Facts, Planned, Probe, Refusal, Resource, Step
from hostwright.roles import sh_file
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.jupyterhub.states.facts import HUB_PROBE, NETWORK, PREFIX, HubFacts, HubServer, read_hub
from hostwright.standard.roles.workspaces.states.cards import card_of, cards_of_host

WHAT = "servers of JupyterHub"
#: text in the plan for a change that requires ``force``
ENDS_WORK = "ends servers in which somebody works"


@dataclass(frozen=True, slots=True)
class HubUser:
    """A user who may log in to the hub."""

    name: str
    uid: int | None  #: UID of the user in the container; ``None``: the UID of the host account
    gid: int | None
    port: int  #: TCP port of the Jupyter server on the host's loopback interface


@dataclass(frozen=True, slots=True)
class HubServers(Resource):
    """Every running Jupyter server belongs to a user in ``people``, with the user's port and only GPUs of the hub.

    Such a server keeps running, also when the hub restarts.
    """

    people: tuple[HubUser, ...]  #: users who may log in. The name ``users`` is a method of ``Resource``.
    gpus: tuple[str, ...] = ()
    #: users whose servers are stopped by the resource ``HubUserLeft``
    left: tuple[str, ...] = field(default=(), metadata=NO_IDENTITY)
    limits: tuple[str, ...] = field(default=(), metadata=NO_IDENTITY)
    #: whether a server may be stopped although its user is working
    force: bool = field(default=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (HUB_PROBE, NVIDIA_SMI)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_hub(facts)
        wrong = dict(self._wrong(found, facts))
        if found.docker or not wrong:
            return None
        have = "; ".join(f"{server.user}'s {why}" for server, why in wrong.items())
        working = [server.at_work for server in wrong if server.at_work]
        if working and not self.force:
            sentence = (
                f"{', '.join(working)} on JupyterHub would be ended: {have}; wait until nobody uses it, or pass --force"
            )
            return Refusal(WHAT, have, "ended", "jupyterhub-in-use", sentence)
        return _ended(have, "ended; people's files stay", [server.user for server in wrong], working=working)

    def notes(self, _facts: Facts) -> tuple[str, ...]:
        return self.limits

    def users(self, facts: Facts) -> tuple[str, ...]:
        return tuple(server.at_work for server, _ in self._wrong(read_hub(facts), facts) if server.at_work)

    def _wrong(self, found: HubFacts, facts: Facts) -> Iterator[tuple[HubServer, str]]:
        ports = {user.name: str(user.port) for user in self.people}
        cards = cards_of_host((), facts)
        share = {card_of(gpu, cards.uuids) for gpu in self.gpus} if cards is not None else set()
        for server in found.servers:
            others = [uuid for uuid in server.gpus if cards is not None and uuid not in share]
            if server.user in self.left:
                continue
            if server.user not in ports:
                yield server, "may no longer log in"
            elif server.running and server.port != ports[server.user]:
                yield server, f"port {server.port} is now {ports[server.user]}"
            elif server.running and others:
                yield server, f"GPU {others[0]} is no longer the hub's"

    def removal(self) -> tuple[Resource, ...]:
        return (HubGone(force=self.force),)


@dataclass(frozen=True, slots=True)
class HubUserLeft(Resource):
    """The user ``person``, who left, has no Jupyter server.

    This state refuses to remove a server with running kernels or terminals. The user cannot log in, and nginx has no
    route to the server. Its container stays on the network, because the hub removes servers that do not respond.
    """

    person: str
    #: whether the server may be stopped although the user is working
    force: bool = field(default=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (HUB_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_hub(facts)
        server = self._server(found)
        if found.docker or server is None:
            return None
        what, have = f"JupyterHub server of {self.person}", f"{self.person} may no longer log in"
        if server.at_work and not self.force:
            sentence = (
                f"{server.at_work} on JupyterHub would be ended: {have}; wait until nobody uses it, stop it on the "
                "hub's page, or pass --force"
            )
            return Refusal(what, have, "ended", "jupyterhub-in-use", sentence, alone=True)
        working = [server.at_work] if server.at_work else []
        ended = _ended(have, "ended; people's files stay", [self.person], working=working)
        return replace(ended, what=what, alone=True)

    def users(self, facts: Facts) -> tuple[str, ...]:
        server = self._server(read_hub(facts))
        return (server.at_work,) if server is not None and server.at_work else ()

    def _server(self, found: HubFacts) -> HubServer | None:
        return next((server for server in found.servers if server.user == self.person), None)

    def removal(self) -> tuple[Resource, ...]:
        return ()  # ``HubGone`` removes all servers.


@dataclass(frozen=True, slots=True)
class HubGone(Resource):
    """Docker has no servers, network or images of JupyterHub."""

    force: bool = field(default=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (HUB_PROBE,)

    def plan(self, facts: Facts) -> Planned | None:
        found = read_hub(facts)
        left = [f"the server of {server.user}" for server in found.servers]
        left += [NETWORK] * bool(found.subnet) + list(found.images)
        if found.docker or not left:
            return None
        working = [server.at_work for server in found.servers if server.at_work]
        if working and not self.force:
            sentence = f"{', '.join(working)} on JupyterHub would be ended; wait until nobody uses it, or pass --force"
            return Refusal(WHAT, ", ".join(left), "absent", "jupyterhub-in-use", sentence)
        users = [server.user for server in found.servers]
        return _ended(", ".join(left), "absent; people's files stay", users, NETWORK, found.images, working=working)

    def users(self, facts: Facts) -> tuple[str, ...]:
        return tuple(server.at_work for server in read_hub(facts).servers if server.at_work)

    def removal(self) -> tuple[Resource, ...]:
        return ()


def _ended(
    have: str, want: str, users: list[str], network: str = "", images: tuple[str, ...] = (), *, working: list[str]
) -> Change:
    names = [PREFIX + user for user in users]
    script = sh_file(__file__, "sh/end.sh", names=names, network=network, images=list(images))
    return Change(WHAT, have, want, (Step(script, timeout_s=900),), disturbs=ENDS_WORK if working else "")
