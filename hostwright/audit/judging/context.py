"""The data about one host from which readings and failure rules are computed. All functions are pure.

Hosts of a run share a result if the computation of the result reads equal data for these hosts (``plan.facts.memory``).
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
    """A check of a host could not be made, because a probe gave no usable answer. Such a check does not count as a
    fault of the host.
    """


@dataclass(frozen=True)
class AuditContext:
    """The facts (answers to probes) and the desired states of one host, without its name.

    ``now`` is the time when the facts were read (UTC). ``changes`` are the planned changes by role. Facts may be
    incomplete (an old audit, or one without sudo): read them with ``answer``. ``cards`` are the roles' interfaces to
    GPUs. ``named`` finds a known failure in a text, and returns its name and the matching line. ``known`` is the
    hardware according to the inventory and earlier audits.
    """

    desired: Desired
    variables: Mapping[str, Any]
    facts: Facts
    changes: Mapping[str, tuple[Planned, ...]]
    now: datetime
    cards: tuple[Cards, ...] = ()
    named: Callable[[str], tuple[str, str] | None] = lambda _: None
    known: KnownHardware = NOTHING_KNOWN
    #: cache of results, shared by all hosts of a run
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)

    @property
    def stack(self) -> Stack:
        """The stack that the host should have."""
        return self.desired.stack

    @property
    def minute(self) -> datetime:
        """The time ``now``, rounded down to the minute.

        A result that depends on ``now`` is computed for each host. A result that depends on ``minute`` is computed once
        a minute.
        """
        return self.now.replace(second=0, microsecond=0)

    def section(self, kind: type[S]) -> S:
        """Return the section of type ``kind`` in the host's stack."""
        return self.stack.section(kind)

    def require(self, probe: Probe) -> None:
        """Raise ``Unread`` if ``probe`` was not run, or timed out."""
        if probe in self.facts.late:
            raise Unread(NotAnswered(probe.script, self.facts.late[probe].late_s).sentence)
        if probe not in self.facts:
            raise Unread(NOT_PROBED)

    def answer(self, probe: Probe) -> Answer:
        """Return the answer to ``probe``, with any exit status. Raises ``Unread`` if ``probe`` was not run or timed
        out.
        """
        self.require(probe)
        return self.facts[probe]

    def text(self, probe: Probe) -> str:
        """Return the output of ``probe``. Raises ``Unread`` if the probe was not run, timed out or failed."""
        answer = self.answer(probe)
        if not answer.ok:
            raise Unread(f"the command of this check ended with status {answer.status}")
        return answer.text

    def differs(self, role: str) -> bool:
        """Return whether ``role``, or a role that provides ``role``, is not as desired on the host."""
        provided = [one.name for one in self.desired.roles if role in one.provides]
        return any(self.changes.get(name) for name in (role, *provided))

    @property
    def packages(self) -> Mapping[str, Installed]:
        """The rows of dpkg's database by package name. Raises ``Unread`` if the database was not read."""
        self.require(DPKG)
        return dpkg_table(self.facts)

    def packages_where(self, wanted: Callable[[Installed], bool]) -> tuple[Installed, ...]:
        """Return the rows of dpkg's database for which ``wanted`` is true.

        Raises ``Unread`` if the database was not read.
        """
        self.require(DPKG)
        return dpkg_rows(self.facts, wanted)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The host's GPUs as their drivers report them. Raises ``Unread`` if no driver reports GPUs."""
        return self.judged("cards", lambda ctx: _of_cards(ctx, lambda cards: cards.gpus(ctx)))

    @property
    def gpu_events(self) -> tuple[GpuEvent, ...]:
        """The recent GPU events in the kernel log. Raises ``Unread`` if no role can read GPU events."""
        return self.judged("events of cards", lambda ctx: _of_cards(ctx, lambda cards: cards.events(ctx)))

    def judged(self, key: Hashable, work: Callable[[AuditContext], T], *, tries: int = MOST_RESULTS) -> T:
        """Return the result of ``work`` for this context, computed once for all hosts with equal data in the parts that
        ``work`` reads.

        An ``Unread`` that ``work`` raises is shared as well. For ``key`` and ``tries``, see ``Memory.judged``.
        """
        return self.memory.judged(key, self, work, (Unread, NotAnswered), tries=tries)

    def settled(self, key: Hashable, work: Callable[[Facts], T]) -> T:
        """Return the result of ``work`` for the facts of this context.

        A further result that uses this result is shared by hosts with equal results of ``work``, even if their facts
        differ. For example, different amounts of memory may both be sufficient.
        """
        return self.memory.judged(key, self.facts, work)

    def token(self, question: Hashable) -> Hashable:
        """Return a hashable key for the part ``question`` of this context. Equal keys mean equal parts.

        ``question`` is the name of a field, a ``Settled``, or a key of the facts.
        """
        if isinstance(question, Settled):
            return question.token(self)
        if not isinstance(question, str) or question not in _PARTS:
            return self.facts.token(question)
        part = getattr(self, question)
        if isinstance(part, Mapping):
            return tuple((role, Same(value)) for role, value in part.items())
        return part if question in _VALUES else Same(part.roles if part is self.desired else part)

    def noting(self, notes: Notes) -> AuditContext:
        """Return the same context, but with each read of a part recorded in ``notes``."""
        return NotedContext(self, notes)


#: names under which reads of the time and of the planned changes are recorded
NOW, CHANGES = "now", "changes"
#: names of a context's parts that are compared by value instead of by identity
_VALUES = (NOW, "minute", "named", "known")


@dataclass(frozen=True, slots=True)
class Settled:
    """A record that a computation has read a result of ``AuditContext.settled``."""

    key: Hashable
    work: Callable[[Facts], object] = field(compare=False)

    def token(self, ctx: AuditContext) -> Hashable:
        """Return the ``repr`` of the result for the context ``ctx``, or the error if there is no result."""
        try:
            return repr(ctx.settled(self.key, self.work))
        except NotAnswered as error:
            return (NotAnswered, str(error))


class NotedContext(AuditContext):
    """An ``AuditContext`` that records in ``notes`` each part that a computation reads."""

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
        """Return the same result as in ``AuditContext``. Records only the result, not the facts that ``work`` reads."""
        self.token(Settled(key, work))
        whole: AuditContext = self._whole
        return whole.settled(key, work)

    def token(self, question: Hashable) -> Hashable:
        """Return the same key as in ``AuditContext``, and record the key in the notes."""
        notes: Notes = self._notes
        if question not in notes:
            notes[question] = self._look.token(question)
        return notes[question]


_PARTS = frozenset({"stack", "minute", *(part.name for part in fields(AuditContext))})


def _of_cards(ctx: AuditContext, read: Callable[[Cards], tuple[T, ...]]) -> tuple[T, ...]:
    """Return the results of ``read`` for all GPU interfaces. Raises ``Unread`` if no role can read GPUs on
    this host.
    """
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
    """Decorate ``read``, which many rules call, to run only once for all hosts with equal data in the parts that
    ``read`` uses.
    """

    @wraps(read)
    def kept(ctx: AuditContext) -> T:
        return ctx.judged(kept, read)

    return kept


@dataclass(frozen=True, slots=True)
class Cards:
    """A role's interface to the GPUs of one vendor: ``CARDS`` in the module ``gpus`` of the role's folder.

    ``gpus`` returns the GPUs as the driver reports them; ``events`` returns the recent events of GPUs. Both raise
    ``Unread`` if the driver reports no such data. ``on_bus`` counts the GPUs of the host, with or without a driver.
    ``driven`` is true if the host has a driver, even if Hostwright did not install it.
    """

    probes: tuple[Probe, ...]
    gpus: Callable[[AuditContext], tuple[Gpu, ...]]
    events: Callable[[AuditContext], tuple[GpuEvent, ...]]
    on_bus: Callable[[Facts], int]
    driven: Callable[[Facts], bool] = lambda _facts: False
