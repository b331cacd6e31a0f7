"""Everything known about one host at one moment, from which readings and failure rules are computed. Pure.

What is computed from an ``AuditContext`` is computed once for all hosts of a run that look alike to it
(``plan.facts.memory``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar

from hostwright.audit.hardware.gpu import Gpu, GpuEvent
from hostwright.audit.hardware.known import NOTHING_KNOWN, KnownHardware
from hostwright.common.canonical import Same
from hostwright.common.errors import NotAnswered
from hostwright.plan.desired import Desired
from hostwright.plan.facts.memory import MOST_RESULTS, Memory
from hostwright.plan.facts.noted import NotedFacts, Notes
from hostwright.plan.model import Answer, Facts, Planned, Probe
from hostwright.resources.packages.packages import DPKG, Installed, dpkg_rows, dpkg_table
from hostwright.stack.stack import Section, Stack

T = TypeVar("T")
S = TypeVar("S", bound=Section)

NOT_PROBED = "not probed (no sudo, or older facts)"


class Unread(Exception):
    """A check cannot be made, for lack of an answer. It is reported as not checked, never as a fault of the host."""


@dataclass(frozen=True)
class AuditContext:
    """The facts of one host with its desired states, without its name. ``now`` is when the facts were read (UTC).

    ``changes`` is what differs, by role, as ``invoke plan`` would show it. ``variables`` are the roles' bound
    variables. Facts may be incomplete (an audit without sudo, or an old one): read them with ``answer``. ``cards`` are
    the ways in which roles read cards. ``named`` finds a known failure by its message in a text: its name, and the line
    with it. ``known`` is what its inventory and earlier audits say about its hardware.
    """

    desired: Desired
    variables: Mapping[str, Any]
    facts: Facts
    changes: Mapping[str, tuple[Planned, ...]]
    now: datetime
    cards: tuple[Cards, ...] = ()
    named: Callable[[str], tuple[str, str] | None] = lambda _: None
    known: KnownHardware = NOTHING_KNOWN
    #: what was judged of this host, and of others in the same run
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)

    @property
    def stack(self) -> Stack:
        """The stack that the host should have."""
        return self.desired.stack

    @property
    def minute(self) -> datetime:
        """``now`` to the full minute. Read this where a minute does not matter: what reads ``now`` is judged for each
        host, what reads this once for all hosts of a minute that look alike."""
        return self.now.replace(second=0, microsecond=0)

    def section(self, kind: type[S]) -> S:
        """The stack's section of that kind: the role's own, or that of a role that it needs."""
        return self.stack.section(kind)

    def require(self, probe: Probe) -> None:
        """Raise ``Unread`` where a probe was not run, or hung."""
        if probe in self.facts.late:
            raise Unread(NotAnswered(probe.script, self.facts.late[probe].late_s).sentence)
        if probe not in self.facts:
            raise Unread(NOT_PROBED)

    def answer(self, probe: Probe) -> Answer:
        """The answer to a probe, whatever its status. Raises ``Unread`` where the probe was not run, or hung."""
        self.require(probe)
        return self.facts[probe]

    def text(self, probe: Probe) -> str:
        """The text of the answer to a probe. Raises ``Unread`` where the probe was not run, or failed."""
        answer = self.answer(probe)
        if not answer.ok:
            raise Unread(f"the probe ended with status {answer.status}")
        return answer.text

    def differs(self, role: str) -> bool:
        """Whether a role, or one in its place, is not as desired. Only then are the logs of its installers evidence;
        otherwise they are history.
        """
        provided = [one.name for one in self.desired.roles if role in one.provides]
        return any(self.changes.get(name) for name in (role, *provided))

    @property
    def packages(self) -> Mapping[str, Installed]:
        """dpkg's database by package name. Raises ``Unread``."""
        self.require(DPKG)
        return dpkg_table(self.facts)

    def packages_where(self, wanted: Callable[[Installed], bool]) -> tuple[Installed, ...]:
        """``dpkg_rows`` of the host. Raises ``Unread``."""
        self.require(DPKG)
        return dpkg_rows(self.facts, wanted)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The host's cards as their drivers report them. Raises ``Unread`` where no driver does."""
        return self.judged("cards", lambda ctx: _of_cards(ctx, lambda cards: cards.gpus(ctx)))

    @property
    def gpu_events(self) -> tuple[GpuEvent, ...]:
        """What the cards reported in recent days. Raises ``Unread`` where that cannot be read."""
        return self.judged("events of cards", lambda ctx: _of_cards(ctx, lambda cards: cards.events(ctx)))

    def judged(self, key: Hashable, work: Callable[[AuditContext], T], *, tries: int = MOST_RESULTS) -> T:
        """``work(ctx)``, made once for all hosts that look alike to it; likewise ``Unread``, where it raises that.
        ``tries`` is as of ``Memory.judged``."""
        return self.memory.judged(key, self, work, (Unread, NotAnswered), tries=tries)

    def settled(self, key: Hashable, work: Callable[[Facts], T]) -> T:
        """``work(ctx.facts)``. Who asks depends on what comes of it, and not on all that it reads: hosts with more and
        less memory, which both have enough. The ``repr`` of a result must hold all of it."""
        return self.memory.judged(key, self.facts, work)

    def token(self, question: Hashable) -> Hashable:
        """A key for the answer to a question: the name of a part of this, what comes of the facts, or a question to
        the facts."""
        if isinstance(question, Settled):
            return question.token(self)
        if not isinstance(question, str) or question not in _PARTS:
            return self.facts.token(question)
        part = getattr(self, question)
        if isinstance(part, Mapping):
            return tuple((role, Same(value)) for role, value in part.items())
        return part if question in _VALUES else Same(part.roles if part is self.desired else part)

    def noting(self, notes: Notes) -> AuditContext:
        """The same, which notes what is read of it."""
        return NotedContext(self, notes)


NOW, CHANGES = "now", "changes"  #: the questions of what depends on the time, and of what reads what differs
#: parts that are compared by their value; others are, by being the same object
_VALUES = (NOW, "minute", "named", "known")


@dataclass(frozen=True, slots=True)
class Settled:
    """The question of who reads what comes of the facts of a host."""

    key: Hashable
    work: Callable[[Facts], object] = field(compare=False)

    def token(self, ctx: AuditContext) -> Hashable:
        """The result as a key, or why there is none."""
        try:
            return repr(ctx.settled(self.key, self.work))
        except NotAnswered as error:
            return (NotAnswered, str(error))


class NotedContext(AuditContext):
    """An ``AuditContext`` that notes what is read of it."""

    def __init__(self, ctx: AuditContext, notes: Notes):
        whole = ctx.__dict__.get("_whole", ctx)
        self.__dict__.update(_look=ctx, _whole=whole, _notes=notes)

    def __getattribute__(self, name: str) -> Any:
        own = super().__getattribute__
        if name not in _PARTS:
            return own(name)
        if name == "facts":
            return NotedFacts(own("_look").facts, own("_notes"))
        if name != "memory":
            self.token(name)
        return getattr(own("_whole"), name)

    def settled(self, key: Hashable, work: Callable[[Facts], T]) -> T:
        """As of every ``AuditContext``; what comes of it is noted, and not what it reads."""
        self.token(Settled(key, work))
        whole: AuditContext = self._whole
        return whole.settled(key, work)

    def token(self, question: Hashable) -> Hashable:
        """As of every ``AuditContext``; it is noted."""
        notes: Notes = self._notes
        if question not in notes:
            notes[question] = self._look.token(question)
        return notes[question]


_PARTS = frozenset({"stack", "minute", *(part.name for part in fields(AuditContext))})


def _of_cards(ctx: AuditContext, read: Callable[[Cards], tuple[T, ...]]) -> tuple[T, ...]:
    """The results of all roles that read cards, of those that can be read."""
    answers: list[tuple[T, ...]] = []
    reason = "no role reads cards"
    for cards in ctx.cards:
        try:
            answers.append(read(cards))
        except Unread as error:
            reason = str(error)
    if not answers:
        raise Unread(reason)
    return tuple(item for items in answers for item in items)


def once(read: Callable[[AuditContext], T]) -> Callable[[AuditContext], T]:
    """Mark a function that many rules call: it runs once for all hosts that look alike to it. Raises what ``read``
    raises."""

    @wraps(read)
    def kept(ctx: AuditContext) -> T:
        return ctx.judged(kept, read)

    return kept


@dataclass(frozen=True, slots=True)
class Cards:
    """How the cards of one vendor are read: ``CARDS`` in the module ``gpus`` of a role's folder.

    ``gpus`` returns the cards as their driver reports them, ``events`` what they reported in recent days; both raise
    ``Unread`` where that cannot be read. ``on_bus`` counts the cards that the host has, with or without a driver;
    ``driven`` tells whether there is one, whoever installed it.
    """

    probes: tuple[Probe, ...]
    gpus: Callable[[AuditContext], tuple[Gpu, ...]]
    events: Callable[[AuditContext], tuple[GpuEvent, ...]]
    on_bus: Callable[[Facts], int]
    driven: Callable[[Facts], bool] = lambda _facts: False
