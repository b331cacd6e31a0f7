"""One host as one look saw it: what readings and the rules of known failures are functions of. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

from hostwright.audit.hardware.gpu import Gpu, GpuEvent
from hostwright.plan.desired import Desired
from hostwright.plan.host.hostfacts import read_host
from hostwright.plan.model import Answer, Facts, Planned, Probe
from hostwright.resources.packages.packages import DPKG, Installed, dpkg_table
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Section, Stack

T = TypeVar("T")
S = TypeVar("S", bound=Section)


class Unread(Exception):
    """A check cannot be made: what it needs was not answered. This is never the host's fault to be reported."""


@dataclass(frozen=True)
class Look:
    """The facts of one host with all that was wanted of it. ``now`` is when it was looked at (UTC).

    ``changes`` are what differs, by role, as ``invoke plan`` would show it. ``variables`` are the roles' bound
    variables. Facts may be incomplete (an audit without sudo, an old look): ask with ``answer``. ``cards`` are the ways
    in which roles read cards. ``named`` gives the name of the known failure whose message is in a text, and the line
    that says so.
    """

    desired: Desired
    variables: Mapping[str, Any]
    facts: Facts
    changes: Mapping[str, tuple[Planned, ...]]
    now: datetime
    cards: tuple[Cards, ...] = ()
    named: Callable[[str], tuple[str, str] | None] = lambda _: None
    #: what functions marked with ``once`` have made of it
    made: dict[Callable[[Look], Any], Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def host(self) -> str:
        """The host's name."""
        return self.desired.host

    @property
    def stack(self) -> Stack:
        """What the host shall have."""
        return self.desired.stack

    def section(self, kind: type[S]) -> S:
        """The stack's section of that kind: the role's own, or that of a role that it needs."""
        return self.stack.section(kind)

    def answer(self, probe: Probe) -> Answer:
        """What the host said to a question, whatever its status. Raises ``Unread`` when it was not asked."""
        if probe not in self.facts:
            raise Unread("it was not asked (no sudo, or an older look)")
        return self.facts[probe]

    def text(self, probe: Probe) -> str:
        """What the host said to a question. Raises ``Unread`` when it was not asked or the question failed."""
        answer = self.answer(probe)
        if not answer.ok:
            raise Unread(f"the question ended with status {answer.status}")
        return answer.text

    def differs(self, role: str) -> bool:
        """Whether a layer is not as desired: then the logs of its installers are evidence, else they are history."""
        return bool(self.changes.get(role))

    @cached_property
    def packages(self) -> Mapping[str, Installed]:
        """dpkg's database by package name. Raises ``Unread``."""
        self.answer(DPKG)
        return dpkg_table(self.facts)

    @cached_property
    def facts_of_host(self) -> HostFacts:
        """Distribution, kernel, cards on the PCI bus, processor, Pythons."""
        return read_host(self.facts)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The host's cards, as their drivers describe them. Raises ``Unread`` where no driver does."""
        return self._of_cards(lambda cards: cards.gpus(self))

    @property
    def gpu_events(self) -> tuple[GpuEvent, ...]:
        """What the cards reported in the last days. Raises ``Unread`` where nobody can tell."""
        return self._of_cards(lambda cards: cards.events(self))

    def _of_cards(self, read: Callable[[Cards], tuple[T, ...]]) -> tuple[T, ...]:
        """What the roles' ways of reading cards give, as far as they can."""
        answers: list[tuple[T, ...]] = []
        reason = "no role reads cards"
        for cards in self.cards:
            try:
                answers.append(read(cards))
            except Unread as error:
                reason = str(error)
        if not answers:
            raise Unread(reason)
        return tuple(item for items in answers for item in items)


def once(read: Callable[[Look], T]) -> Callable[[Look], T]:
    """Mark what many rules of a role are read from: it is made once of each look. Raises as ``read``."""

    @wraps(read)
    def kept(look: Look) -> T:
        if kept not in look.made:
            look.made[kept] = read(look)
        return cast(T, look.made[kept])

    return kept


@dataclass(frozen=True, slots=True)
class Cards:
    """How the cards of one vendor are read: ``CARDS`` in the module ``gpus`` of a role's folder.

    ``gpus`` gives the cards as their driver describes them, ``events`` what they reported in the last days; both raise
    ``Unread`` where they cannot tell. ``on_bus`` counts the cards that the host has, with a driver or without one.
    """

    probes: tuple[Probe, ...]
    gpus: Callable[[Look], tuple[Gpu, ...]]
    events: Callable[[Look], tuple[GpuEvent, ...]]
    on_bus: Callable[[Facts], int]
