"""Files that the states of roles take and no stack names, such as the packages of an environment. Pure data.

def files(self) -> tuple[RoleFile, ...]:
    return self.wheels
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from hostwright.plan.model import Facts
from hostwright.stack.stack import RoleFile


@runtime_checkable
class HasFiles(Protocol):
    """A state that takes such files. Its changes name them as they name artifacts."""

    def files(self) -> tuple[RoleFile, ...]:
        """All that its changes may name, on whatever host."""
        ...

    def files_for(self, facts: Facts | None, /) -> tuple[RoleFile, ...]:
        """Those that a host with these facts takes; where nothing is known of it, all that it may take.

        Raises ``ArtifactError`` where it takes one that nobody can name.
        """
        ...


def files_for(resources: Iterable[object], facts: Facts | None) -> tuple[RoleFile, ...]:
    """The files that these resources take on a host with these facts; see ``HasFiles``. Raises ``ArtifactError``."""
    return tuple(file for resource in resources if isinstance(resource, HasFiles) for file in resource.files_for(facts))


def role_files(resources: Iterable[object]) -> tuple[RoleFile, ...]:
    """All files that changes of these resources may name."""
    return tuple(file for resource in resources if isinstance(resource, HasFiles) for file in resource.files())
