"""Everything known about one host at one moment, from which readings and failure rules are computed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

from hostwright.audit.hardware.gpu import Gpu, GpuEvent
from hostwright.common.errors import NotAnswered
from hostwright.plan.desired import Desired
from hostwright.plan.host.hostfacts import read_host
from hostwright.plan.model import Answer, Facts, Planned, Probe
from hostwright.resources.packages.packages import DPKG, Installed, dpkg_table
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Section, Stack

T = TypeVar("T")
S = TypeVar("S", bound=Section)

NOT_PROBED = "not probed (no sudo, or older facts)"


class Unread(Exception):
    """A check cannot be made, for lack of an answer. It is reported as not checked, never as a fault of the host."""


@dataclass(frozen=True)
class Look:
    """The facts of one host with its desired states. ``now`` is when the facts were read (UTC).

    ``changes`` is what differs, by role, as ``invoke plan`` would show it. ``variables`` are the roles' bound
    variables. Facts may be incomplete (an audit without sudo, or an old one): read them with ``answer``. ``cards`` are
    the ways in which roles read cards. ``named`` finds a known failure by its message in a text: its name, and the line
    with it.
    """

    desired: Desired
    variables: Mapping[str, Any]
    facts: Facts
    changes: Mapping[str, tuple[Planned, ...]]
    now: datetime
    cards: tuple[Cards, ...] = ()
    named: Callable[[str], tuple[str, str] | None] = lambda _: None
    #: the results of functions marked with ``once``
    made: dict[Callable[[Look], Any], Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def host(self) -> str:
        """The host's name."""
        return self.desired.host

    @property
    def stack(self) -> Stack:
        """The stack that the host should have."""
        return self.desired.stack

    def section(self, kind: type[S]) -> S:
        """The stack's section of that kind: the role's own, or that of a role that it needs."""
        return self.stack.section(kind)

    def answer(self, probe: Probe) -> Answer:
        """The answer to a probe, whatever its status. Raises ``Unread`` where the probe was not run, or hung."""
        if probe in self.facts.late:
            raise Unread(NotAnswered(probe.script, self.facts.late[probe].late_s).sentence)
        if probe not in self.facts:
            raise Unread(NOT_PROBED)
        return self.facts[probe]

    def text(self, probe: Probe) -> str:
        """The text of the answer to a probe. Raises ``Unread`` where the probe was not run, or failed."""
        answer = self.answer(probe)
        if not answer.ok:
            raise Unread(f"the probe ended with status {answer.status}")
        return answer.text

    def differs(self, role: str) -> bool:
        """Whether a layer is not as desired. Only then are the logs of its installers evidence; otherwise they are
        history.
        """
        return bool(self.changes.get(role))

    @cached_property
    def packages(self) -> Mapping[str, Installed]:
        """dpkg's database by package name. Raises ``Unread``."""
        self.answer(DPKG)
        return dpkg_table(self.facts)

    @cached_property
    def facts_of_host(self) -> HostFacts:
        """Distribution, kernel, cards on the PCI bus, processor, Python versions."""
        return read_host(self.facts)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The host's cards as their drivers report them. Raises ``Unread`` where no driver does."""
        return self._of_cards(lambda cards: cards.gpus(self))

    @property
    def gpu_events(self) -> tuple[GpuEvent, ...]:
        """What the cards reported in recent days. Raises ``Unread`` where that cannot be read."""
        return self._of_cards(lambda cards: cards.events(self))

    def _of_cards(self, read: Callable[[Cards], tuple[T, ...]]) -> tuple[T, ...]:
        """The results of all roles that read cards, of those that can be read."""
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
    """Cache a function that many rules call: it runs once for each ``Look``. Raises what ``read`` raises."""

    @wraps(read)
    def kept(look: Look) -> T:
        if kept not in look.made:
            look.made[kept] = read(look)
        return cast(T, look.made[kept])

    return kept


@dataclass(frozen=True, slots=True)
class Cards:
    """How the cards of one vendor are read: ``CARDS`` in the module ``gpus`` of a role's folder.

    ``gpus`` returns the cards as their driver reports them, ``events`` what they reported in recent days; both raise
    ``Unread`` where that cannot be read. ``on_bus`` counts the cards that the host has, with or without a driver.
    """

    probes: tuple[Probe, ...]
    gpus: Callable[[Look], tuple[Gpu, ...]]
    events: Callable[[Look], tuple[GpuEvent, ...]]
    on_bus: Callable[[Facts], int]
