"""Whose workspaces run on a host, by name: asked of every host before anything that would end them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hostwright.common.quoting import sh
from hostwright.plan.host.occupancy import Occupancy
from hostwright.plan.model import Facts, Probe
from hostwright.standard.roles.container.running import CONTAINERS, ended_by_reboot
from hostwright.standard.roles.workspaces.declared.workspace import STATE

#: root's definitions of the workspaces that the host has, a line each
DEFINITIONS = Probe(
    sh(
        "for file in %s/*/definition.json; do [ -f \"$file\" ] || continue; head -c 65536 -- \"$file\" | tr '\\n' ' ';"
        " echo; done",
        STATE,
    ),
    root=True,
    cap_bytes=1024 * 1024,
)


def _running(facts: Facts) -> Iterator[tuple[str, str, bool]]:
    """The workspaces that run: whose, what starts them again, and whether they have a GPU."""
    containers = [(name.rpartition(" workspace-"), again) for name, again in ended_by_reboot(facts)]
    again_of = {name: again for (_, mark, name), again in containers if mark}
    for line in facts[DEFINITIONS].text.splitlines():
        try:
            definition = json.loads(line)
            name, user, gpus = (definition[key] for key in ("name", "user", "gpus"))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(name, str) and name in again_of:
            yield f"workspace {name} of {user}", again_of[name], bool(gpus)


def _users(facts: Facts) -> tuple[str, ...]:
    return tuple(name for name, _, has_gpu in _running(facts) if has_gpu)


def _ended(facts: Facts) -> tuple[tuple[str, str], ...]:
    return tuple((name, again) for name, again, _ in _running(facts))


OCCUPANCY = Occupancy((CONTAINERS, DEFINITIONS), _users, _ended)
