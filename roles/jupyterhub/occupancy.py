"""Users' running Jupyter servers, which a reboot of the host would end."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import Facts
from hostwright.roles import Occupancy
from hostwright.standard.roles.container.running import (
    CHILDREN,
    CONTAINERS,
    children_of,
    ended_by_reboot,
    first_process,
    processes,
    technical_name,
)
from hostwright.standard.roles.jupyterhub.states.facts import PREFIX


def _servers(facts: Facts) -> Iterator[tuple[str, str, str]]:
    children = children_of(facts)
    for name, again in ended_by_reboot(facts):
        _, mark, user = name.rpartition(f" {PREFIX}")
        if mark:
            number = children.get(first_process(name), 0)
            work = f" ({processes(number)})" if number else ""
            yield technical_name(name), f"the JupyterHub server of {user}{work}", "" if number else again


def _ended(facts: Facts) -> tuple[tuple[str, str], ...]:
    return tuple((server, again) for _, server, again in _servers(facts))


def _known_as(facts: Facts) -> dict[str, str]:
    return {container: server for container, server, _ in _servers(facts)}


#: occupancy of the hub's containers. The role ``driver`` finds containers with a GPU.
OCCUPANCY = Occupancy((CONTAINERS, CHILDREN), lambda _facts: (), _ended, _known_as)
