"""The desired state of a host: the desired states of its roles, and the probes that a plan needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from hostwright.common.canonical import Same
from hostwright.plan.host import drained, jobs, locks
from hostwright.plan.host.hostfacts import HOST_PROBES
from hostwright.plan.host.occupancy import Occupancies, standard_occupancies
from hostwright.plan.host.release import RELEASE
from hostwright.plan.model import Probe, Resource
from hostwright.plan.probing import ordered
from hostwright.stack.ages import NONE, Advisories
from hostwright.stack.fitting import RoleRules
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack

#: probes that run on every host. Further probes look for running work.
ENGINE_PROBES = (*HOST_PROBES, jobs.RUNNING, locks.LOCK, locks.RUN_LOCK, drained.DRAINED, RELEASE)


@dataclass(frozen=True, slots=True)
class DesiredRole:
    """A role's desired states on one host.

    ``needs`` are the roles that must be applied before this role. ``provides`` are the roles that this role replaces.
    """

    name: str
    needs: tuple[str, ...]
    resources: tuple[Resource, ...]
    provides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state of a host: its stack, and the desired states of each role in the order of execution."""

    host: str
    stack: Stack
    roles: tuple[DesiredRole, ...]
    removes: bool = False  #: whether the states remove the roles from the host
    #: whether the states are independent of the stack, so that no compatibility rule or release record applies to them
    apart: bool = False
    #: compatibility rules of all the host's roles, even if ``--roles`` excludes them
    rules: tuple[RoleRules, ...] = ()
    #: names of all the host's roles, even if ``--roles`` excludes them; empty if unknown
    of_host: tuple[str, ...] = ()
    #: probes and functions that find running programs that use accelerators
    occupancy: Occupancies = field(default_factory=standard_occupancies)
    #: known ends of life, and oldest safe versions, of the stack's software
    advisories: Advisories = field(default=NONE, compare=False, repr=False)
    #: function that returns the stacks that fit a host, best first
    fitting: Callable[[HostFacts], tuple[Stack, ...]] = field(default=lambda _: (), compare=False, repr=False)

    def versions(self) -> dict[str, str]:
        """Return software name → version in the stack, for the software of ``roles``."""
        sections = (self.stack.sections[role.name] for role in self.roles if role.name in self.stack.sections)
        return {name: version for section in sections for name, version in section.versions().items()}

    def probes(self) -> tuple[Probe, ...]:
        """Return all probes that a plan for ``host`` needs, each once."""
        return _questions(Same(self.roles), Same(self.occupancy))


@lru_cache(maxsize=64)  # Many hosts of a fleet have equal desired states.
def _questions(roles: Same[tuple[DesiredRole, ...]], occupancy: Same[Occupancies]) -> tuple[Probe, ...]:
    asked = (probe for role in roles.value for resource in role.resources for probe in resource.probes())
    return ordered([*ENGINE_PROBES, *occupancy.value.probes, *asked])


def forget_questions() -> None:
    """Clear the cache of ``Desired.probes``, because its keys may contain secrets."""
    _questions.cache_clear()
