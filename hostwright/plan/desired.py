"""What one host shall be, as values: the states of each role, and every question whose answer a plan reads."""

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

#: What the engine itself asks of every host, beside who uses it: what the rules are about, and what it says that it is.
ENGINE_PROBES = (*HOST_PROBES, jobs.RUNNING, locks.LOCK, locks.RUN_LOCK, drained.DRAINED, RELEASE)


@dataclass(frozen=True, slots=True)
class DesiredRole:
    """One role's desired states on one host; ``needs`` are the roles that go before it, ``provides`` those in whose
    place it is there."""

    name: str
    needs: tuple[str, ...]
    resources: tuple[Resource, ...]
    provides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Desired:
    """What one host shall be: its stack and the states of its roles, in order."""

    host: str
    stack: Stack
    roles: tuple[DesiredRole, ...]
    removes: bool = False  #: whether these are the states of a host from which the roles were taken away
    #: whether they stand beside what the stack wants: no rule asks whether it fits, and reaching them is no release
    apart: bool = False
    rules: tuple[RoleRules, ...] = ()  #: what fits all roles of the host, also those that are not looked at now
    of_host: tuple[str, ...] = ()  #: the names of all roles of the host; empty where that is not known
    #: how its users are known, whatever is wanted of it
    occupancy: Occupancies = field(default_factory=standard_occupancies)
    #: the ends of life and security floors that are known
    advisories: Advisories = field(default=NONE, compare=False, repr=False)
    #: the stacks that fit a host with these facts, the best first: asked only where this one does not
    fitting: Callable[[HostFacts], tuple[Stack, ...]] = field(default=lambda _: (), compare=False, repr=False)

    def versions(self) -> dict[str, str]:
        """The versions that the stack pins for these roles."""
        sections = (self.stack.sections[role.name] for role in self.roles if role.name in self.stack.sections)
        return {name: version for section in sections for name, version in section.versions().items()}

    def probes(self) -> tuple[Probe, ...]:
        """Every question of every role, each once, with those that the engine itself asks."""
        return _questions(Same(self.roles), Same(self.occupancy))


@lru_cache(maxsize=64)  # the hosts of a fleet share their states
def _questions(roles: Same[tuple[DesiredRole, ...]], occupancy: Same[Occupancies]) -> tuple[Probe, ...]:
    asked = (probe for role in roles.value for resource in role.resources for probe in resource.probes())
    return ordered([*ENGINE_PROBES, *occupancy.value.probes, *asked])


def forget_questions() -> None:
    """Drop the cached questions, whose keys are the states of hosts: a step of a state may hold a secret."""
    _questions.cache_clear()
