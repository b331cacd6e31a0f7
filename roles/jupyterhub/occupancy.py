"""Whose servers of JupyterHub run on a host, by name: asked of every host before anything that would end them."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.plan.host.occupancy import Occupancy
from hostwright.plan.model import Facts
from hostwright.standard.roles.container.running import CONTAINERS, ended_by_reboot
from hostwright.standard.roles.jupyterhub.states.look import PREFIX


def _ended(facts: Facts) -> tuple[tuple[str, str], ...]:
    return tuple(_servers(facts))


def _servers(facts: Facts) -> Iterator[tuple[str, str]]:
    for name, again in ended_by_reboot(facts):
        _, mark, user = name.rpartition(f" {PREFIX}")
        if mark:
            yield f"the JupyterHub server of {user}", again


#: Who has a GPU is known to the driver's role, which sees the containers.
OCCUPANCY = Occupancy((CONTAINERS,), lambda _facts: (), _ended)
