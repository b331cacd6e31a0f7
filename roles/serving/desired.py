"""States of the role ``serving``, imported only for hosts with this role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostwright.resources import Resource
from hostwright.standard.roles.serving.states.served import ModelReadable, ModelServed
from hostwright.standard.roles.serving.states.unserved import Unserved
from hostwright.standard.roles.workspaces.declared.workspace import Workspace


def states(servers: Sequence[Workspace]) -> Iterator[Resource]:
    """Yield the states of the role ``serving`` for the model servers ``servers``."""
    yield Unserved(tuple(space.name for space in servers))
    for space in servers:
        yield ModelReadable(space.name)
        yield ModelServed(space.name, space.port, tuple(sorted(space.entry.versions.items())), space.entry.live)
