"""Who uses the accelerators of a host: asked of every host, whether the role that knows it is wanted there or not.

What is wanted of a host says nothing of who works on it: a host that keeps its driver and is looked at for one layer
alone has its users, too.
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

PART: Final = "occupancy"  #: the module of a role's folder that has one, as ``OCCUPANCY``


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How the users of one kind of accelerator are known: ``users`` names them in the words of a sentence, such as
    ``python3 (4711)``, from the answers to ``probes``. ``ended`` names those whom a reboot ends, whether they use an
    accelerator or not, each with what starts it again afterwards (empty where nothing does). ``known_as`` tells whose
    something is that others name by its technical name: the beginning of that name, and what to say instead.
    ``services`` are services whose restart ends somebody's work, by the word with which a script names each; the users
    of the condition are that work.
    """

    probes: tuple[Probe, ...]
    users: Callable[[Facts], tuple[str, ...]]
    ended: Callable[[Facts], tuple[tuple[str, str], ...]] = lambda _facts: ()
    known_as: Callable[[Facts], Mapping[str, str]] = lambda _facts: {}
    services: tuple[tuple[str, Condition], ...] = ()


@dataclass(frozen=True, slots=True)
class Occupancies:
    """All kinds together."""

    each: tuple[Occupancy, ...] = ()

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What a change that disturbs running work must know."""
        return ordered(probe for kind in self.each for probe in kind.probes)

    def users(self, facts: Facts) -> tuple[str, ...]:
        """Who uses an accelerator, each once. Reads ``probes``; where one hung, somebody may."""
        return self.named((name for kind in self.each for name in _users(kind, facts)), facts)

    def ended(self, facts: Facts) -> tuple[str, ...]:
        """Whom a reboot ends for good, whether they use an accelerator or not. Reads ``probes``."""
        return tuple(name for name, again in self._ended(facts) if not again)

    def at_work(self, facts: Facts, *, boots: bool) -> AtWork:
        """Who uses an accelerator, and whom a cut of power ends for good: everybody, unless the host ``boots`` again.

        Reads ``probes``.
        """
        ended = self._ended(facts)
        return AtWork(self.users(facts), tuple(name for name, again in ended if not (boots and again)))

    def returning(self, facts: Facts) -> tuple[str, ...]:
        """A sentence for each one that a reboot ends, and that something starts again. Reads ``probes``."""
        return tuple(f"the reboot ends {name}; {again}" for name, again in self._ended(facts) if again)

    def named(self, names: Iterable[str], facts: Facts) -> tuple[str, ...]:
        """These names in the words of those who know whose it is, each once. Reads ``probes``."""
        known = self._known(facts)
        return tuple(dict.fromkeys(_known(name, known) for name in names))

    def _known(self, facts: Facts) -> list[tuple[str, str]]:
        """What is said instead of technical names; roles come after those that they need, and know more."""
        return [pair for kind in reversed(self.each) for pair in _known_as(kind, facts).items()]

    def _ended(self, facts: Facts) -> tuple[tuple[str, str], ...]:
        """Each one that a reboot ends, once: what nothing starts again is so, whoever else says otherwise."""
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
        return {}  # the technical name is better than none


def _users(kind: Occupancy, facts: Facts) -> tuple[str, ...]:
    try:
        return kind.users(facts)
    except NotAnswered as error:
        return (f"somebody who is not known ({error})",)


def _ended(kind: Occupancy, facts: Facts) -> tuple[tuple[str, str], ...]:
    try:
        return kind.ended(facts)
    except NotAnswered as error:
        return ((f"somebody who is not known ({error})", ""),)


def occupancies_of(roles: Iterable[Role]) -> Occupancies:
    """What these roles know of users, and those who know how cards are read."""
    known = tuple(roles)
    parts = dict.fromkeys(role.part(PART) for role in (*reading_cards(known), *known))
    return Occupancies(tuple(part.OCCUPANCY for part in parts if part is not None))


@cache
def standard_occupancies() -> Occupancies:
    """What the standard roles know of users."""
    return occupancies_of(discover())


def services_at_work() -> tuple[tuple[str, Condition], ...]:
    """The services whose restart ends somebody's work (``Occupancy.services``), of all kinds."""
    return tuple(service for kind in standard_occupancies().each for service in kind.services)


@dataclass(frozen=True, slots=True)
class AtWork:
    """Who is at work on a host and would be hit: ``gpus`` use a GPU, ``others`` are named by a state that changes."""

    gpus: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def everyone(self) -> tuple[str, ...]:
        """Each of them once; of one that both name, the longer name."""
        names = dict.fromkeys([*self.gpus, *self.others])
        return tuple(name for name in names if not any(other.startswith(f"{name} ") for other in names))
