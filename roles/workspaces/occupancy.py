"""Running workspaces of a host, for operations that would end them, such as a reboot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import Facts, Probe
from hostwright.roles import Occupancy, sh
from hostwright.standard.roles.container.running import (
    CHILDREN,
    CONTAINERS,
    children_of,
    ended_by_reboot,
    first_process,
    processes,
    technical_name,
)
from hostwright.standard.roles.workspaces.declared.forms import UNATTENDED
from hostwright.standard.roles.workspaces.declared.workspace import STATE

#: probe that prints root's definitions of workspaces, one per line
DEFINITIONS = Probe(
    sh(
        "for file in %s/*/definition.json; do [ -f \"$file\" ] || continue; head -c 65536 -- \"$file\" | tr '\\n' ' ';"
        " echo; done",
        STATE,
    ),
    root=True,
    cap_bytes=1024 * 1024,
    shared=True,
)


@dataclass(frozen=True, slots=True)
class _Space:
    container: str  #: name of the workspace's container
    name: str  #: text with the workspace, the user and the number of processes
    again: str  #: name of the mechanism that restarts an ended workspace; empty: none
    has_gpu: bool


def _running(facts: Facts) -> Iterator[_Space]:
    containers = [(named, named.rpartition(" workspace-"), again) for named, again in ended_by_reboot(facts)]
    of_space = {name: (named, again) for named, (_, mark, name), again in containers if mark}
    children = children_of(facts)
    for line in facts[DEFINITIONS].text.splitlines():
        try:
            definition = json.loads(line)
            name, user, kind, gpus = (definition[key] for key in ("name", "user", "kind", "gpus"))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(name, str) and name in of_space:
            named, again = of_space[name]
            number = 0 if kind in UNATTENDED else children.get(first_process(named), 0)
            work = "a batch run" if kind == "batch" else processes(number) if number else ""
            whose = f"workspace {name} of {user}{f' ({work})' if work else ''}"
            yield _Space(technical_name(named), whose, "" if work else again, bool(gpus))


def _users(facts: Facts) -> tuple[str, ...]:
    return tuple(space.name for space in _running(facts) if space.has_gpu)


def _ended(facts: Facts) -> tuple[tuple[str, str], ...]:
    return tuple((space.name, space.again) for space in _running(facts))


def _known_as(facts: Facts) -> dict[str, str]:
    return {space.container: space.name for space in _running(facts)}


OCCUPANCY = Occupancy((CONTAINERS, CHILDREN, DEFINITIONS), _users, _ended, _known_as)
