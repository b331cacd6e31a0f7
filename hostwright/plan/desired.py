"""The desired state of one host: the states of each role, and the probes whose answers a plan needs."""

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

#: Probes that the engine runs on every host, in addition to the probes for the host's users. They find the facts for
#: rules, the locks, the jobs and the release record.
ENGINE_PROBES = (*HOST_PROBES, jobs.RUNNING, locks.LOCK, locks.RUN_LOCK, drained.DRAINED, RELEASE)


@dataclass(frozen=True, slots=True)
class DesiredRole:
    """One role's desired states on one host.

    ``needs`` are the roles that must be applied before it, ``provides`` the roles that it replaces.
    """

    name: str
    needs: tuple[str, ...]
    resources: tuple[Resource, ...]
    provides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state of one host: its stack and the states of its roles, in order."""

    host: str
    stack: Stack
    roles: tuple[DesiredRole, ...]
    removes: bool = False  #: whether these are the states of a host without the roles
    #: whether the states are independent of the stack: no compatibility rule applies, and no release record is written
    apart: bool = False
    rules: tuple[RoleRules, ...] = ()  #: rules of all roles of the host, including those that are not planned now
    of_host: tuple[str, ...] = ()  #: names of all roles of the host; empty if unknown
    #: probes and functions that find the host's users, independent of its roles
    occupancy: Occupancies = field(default_factory=standard_occupancies)
    #: known ends of life and security floors
    advisories: Advisories = field(default=NONE, compare=False, repr=False)
    #: returns the stacks that fit a host, best first; called only if this stack does not fit
    fitting: Callable[[HostFacts], tuple[Stack, ...]] = field(default=lambda _: (), compare=False, repr=False)

    def versions(self) -> dict[str, str]:
        """The versions that the stack pins for these roles."""
        sections = (self.stack.sections[role.name] for role in self.roles if role.name in self.stack.sections)
        return {name: version for section in sections for name, version in section.versions().items()}

    def probes(self) -> tuple[Probe, ...]:
        """All probes of the roles and of the engine, each once."""
        return _questions(Same(self.roles), Same(self.occupancy))


@lru_cache(maxsize=64)  # the hosts of a fleet share their states
def _questions(roles: Same[tuple[DesiredRole, ...]], occupancy: Same[Occupancies]) -> tuple[Probe, ...]:
    asked = (probe for role in roles.value for resource in role.resources for probe in resource.probes())
    return ordered([*ENGINE_PROBES, *occupancy.value.probes, *asked])


def forget_questions() -> None:
    """Clear the cache of probes: its keys are desired states, which may contain secrets."""
    _questions.cache_clear()
