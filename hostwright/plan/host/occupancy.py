"""Finds the programs that use a host's accelerators ("users").

All known roles contribute functions, even for hosts without the role, because programs on any host may use a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from hostwright.common.errors import NotAnswered
from hostwright.plan.model import Condition, Facts, Probe
from hostwright.plan.probing import ordered
from hostwright.plan.roles.role import Role, discover, reading_cards

PART: Final = "occupancy"  #: name of the module in a role's folder that defines ``OCCUPANCY``


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Probes and functions that find the users of one kind of accelerator. The functions read only answers to
    ``probes``.

    ``users`` returns the users as texts for messages, such as ``python3 (4711)``. ``ended`` returns pairs: work that a
    reboot ends, and the service that restarts this work, or an empty text. ``known_as`` maps technical names of users
    and work to names for messages. ``services`` are pairs of a service and a condition: a restart of the service ends
    the work that the condition's ``users`` returns.
    """

    probes: tuple[Probe, ...]
    users: Callable[[Facts], tuple[str, ...]]
    ended: Callable[[Facts], tuple[tuple[str, str], ...]] = lambda _facts: ()
    known_as: Callable[[Facts], Mapping[str, str]] = lambda _facts: {}
    services: tuple[tuple[str, Condition], ...] = ()


@dataclass(frozen=True, slots=True)
class Occupancies:
    """The ``Occupancy`` objects of all kinds of accelerators, and functions that combine their results."""

    each: tuple[Occupancy, ...] = ()

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The probes for all kinds of accelerators."""
        return ordered(probe for kind in self.each for probe in kind.probes)

    def users(self, facts: Facts) -> tuple[str, ...]:
        """The users of the host's accelerators, each once. "unknown users" stands for each kind with a probe that
        hung.
        """
        return self.named((name for kind in self.each for name in _users(kind, facts)), facts)

    def ended(self, facts: Facts) -> tuple[str, ...]:
        """The work that a reboot ends and that no service restarts, with or without accelerators."""
        return tuple(name for name, again in self._ended(facts) if not again)

    def at_work(self, facts: Facts, *, boots: bool) -> AtWork:
        """The users of accelerators, and other work that ends if the host is turned off.

        With ``boots``, work that a service restarts at boot is omitted.
        """
        ended = self._ended(facts)
        return AtWork(self.users(facts), tuple(name for name, again in ended if not (boots and again)))

    def returning(self, facts: Facts) -> tuple[str, ...]:
        """A sentence for each running work that a reboot ends and that a service then restarts."""
        return tuple(f"the reboot ends {name}; {again}" for name, again in self._ended(facts) if again)

    def named(self, names: Iterable[str], facts: Facts) -> tuple[str, ...]:
        """Return ``names`` for messages: technical names are replaced, and duplicates are dropped."""
        known = self._known(facts)
        return tuple(dict.fromkeys(_known(name, known) for name in names))

    def _known(self, facts: Facts) -> list[tuple[str, str]]:
        return [pair for kind in reversed(self.each) for pair in _known_as(kind, facts).items()]

    def _ended(self, facts: Facts) -> tuple[tuple[str, str], ...]:
        known = self._known(facts)
        again_of: dict[str, str] = {}
        ended = (pair for kind in self.each for pair in _ended(kind, facts))
        for name, again in ((_known(technical, known), again) for technical, again in ended):
            again_of[name] = again if again_of.get(name, again) else ""
        return tuple(again_of.items())


def _known(name: str, known: Iterable[tuple[str, str]]) -> str:
    return next((instead for begin, instead in known if f"{name} ".startswith(f"{begin} ")), name)


def _known_as(kind: Occupancy, facts: Facts) -> Mapping[str, str]:
    try:
        return kind.known_as(facts)
    except NotAnswered:
        return {}  # Messages then show the technical names of the programs.


def _users(kind: Occupancy, facts: Facts) -> tuple[str, ...]:
    try:
        return kind.users(facts)
    except NotAnswered as error:
        return (f"unknown users ({error})",)


def _ended(kind: Occupancy, facts: Facts) -> tuple[tuple[str, str], ...]:
    try:
        return kind.ended(facts)
    except NotAnswered as error:
        return ((f"unknown users ({error})", ""),)


def occupancies_of(roles: Iterable[Role]) -> Occupancies:
    """Return the ``OCCUPANCY`` objects of ``roles``, and of all standard roles that read the state of GPUs."""
    known = tuple(roles)
    parts = dict.fromkeys(role.part(PART) for role in (*reading_cards(known), *known))
    return Occupancies(tuple(part.OCCUPANCY for part in parts if part is not None))


@cache
def standard_occupancies() -> Occupancies:
    """Return the ``OCCUPANCY`` objects of the standard roles."""
    return occupancies_of(discover())


def services_at_work() -> tuple[tuple[str, Condition], ...]:
    """Pairs of a service and a condition: a restart of the service ends the work that the condition's ``users``
    returns.
    """
    return tuple(service for kind in standard_occupancies().each for service in kind.services)


@dataclass(frozen=True, slots=True)
class AtWork:
    """Work on a host that a change would disturb: users of GPUs (``gpus``), and other work (``others``)."""

    gpus: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def everyone(self) -> tuple[str, ...]:
        """The work in ``gpus`` and ``others``, each program once with its longest name."""
        names = dict.fromkeys([*self.gpus, *self.others])
        return tuple(name for name in names if not any(other.startswith(f"{name} ") for other in names))
