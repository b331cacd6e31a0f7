"""Caches results that are computed from hosts' answers to probes, for the duration of a run.

A judgement is a pure function of a host's facts, such as the plan of a state. While it runs, the facts that it reads
are recorded as its dependencies, and so are the facts read by judgements that it calls. The result is reused for hosts
whose dependencies have the same values:

>>> from hostwright.plan.model import Answer, Facts, Probe
>>> KERNEL, SHELL = Probe("uname -r"), Probe("echo $SHELL")
>>> def is_old(facts):
...     print("judged")
...     return facts[KERNEL].text.startswith("5.")
>>> memory = Memory()
>>> memory.judged("old", Facts({KERNEL: Answer(0, "5.10"), SHELL: Answer(0, "/bin/sh")}), is_old)
judged
True
>>> memory.judged("old", Facts({KERNEL: Answer(0, "5.10"), SHELL: Answer(0, "/bin/zsh")}), is_old)
True
>>> memory.judged("old", Facts({KERNEL: Answer(0, "6.1")}), is_old)
judged
False

A run owns its ``Memory``, which is limited in size and never written to disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from hostwright.common.errors import NotAnswered
from hostwright.plan.facts import Facts
from hostwright.plan.facts.noted import NotedFacts, Notes

T = TypeVar("T")
K = TypeVar("K")

MOST_RESULTS = 64  #: maximum number of cached results per judgement (our choice)
#: maximum number of cached judgements (our choice). A host with all roles has some hundred judgements.
MOST_JUDGEMENTS = 8192


@dataclass(slots=True)
class _Known:
    """A leaf in the tree of one judgement's dependencies: the judgement's result, or the exception that it raised."""

    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.value


@dataclass(slots=True)
class _Asked:
    """An inner node in the tree of one judgement's dependencies: a dependency, with a child node for each of its
    values.
    """

    question: Hashable
    then: dict[Hashable, _Asked | _Known] = field(default_factory=dict)


@dataclass(slots=True)
class _Judgement:
    """The cache of one judgement. Recording dependencies has a cost, so caching pauses while no call reuses a
    result.
    """

    begin: _Asked | _Known | None = None
    results: int = 0
    hits: int = 0  #: number of calls that reused a result
    resting: int = 0  #: number of remaining calls without caching
    rest: int = 0  #: number of calls in the last pause of caching
    last: tuple[object, _Known] | None = None  #: subject and result of the last call


class Memory:
    """The thread-safe cache of a run, with the results of judgements and other values. Each result is computed once.

    A copy of a ``Memory``, also by pickling, is empty.
    """

    def __init__(self, most_results: int = MOST_RESULTS, most_judgements: int = MOST_JUDGEMENTS):
        self._most_results, self._most_judgements = most_results, most_judgements
        self._judgements: dict[Hashable, _Judgement] = {}
        self._kept: dict[str, dict[Hashable, Any]] = {}
        self._lock = threading.RLock()

    @property
    def turn(self) -> AbstractContextManager[object]:
        """A lock that a thread may hold while it computes all results of one host.

        The lock saves an eighth of an audit's CPU time, because threads otherwise wait for each other in every
        judgement.
        """
        return self._lock

    def judged(
        self,
        key: Hashable,
        subject: K,
        work: Callable[[K], T],
        errors: tuple[type[Exception], ...] = (NotAnswered,),
        *,
        tries: int = MOST_RESULTS,
    ) -> T:
        """Return ``work(subject)``, computed once for all subjects with equal values of the facts that ``work`` reads.

        ``subject`` is a ``Facts`` object, or an object with the methods ``token`` and ``noting(notes)``. ``noting``
        returns a copy of ``subject`` that records reads in ``notes``. Calls with equal ``key`` must have equal
        ``work``.

        Exceptions of the types ``errors`` are cached like results. Caching pauses if none of ``tries`` results was
        reused.
        """
        seen: Any = subject
        with self._lock:
            known = self._judgements.get(key)
            if known is None:
                known = self._begun(key)
            if known.last and known.last[0] is seen:
                again: T = known.last[1].result()
                return again
            if known.resting:
                known.resting -= 1
                return work(seen)
            node = known.begin
            while type(node) is _Asked:
                node = node.then.get(seen.token(node.question))
            if type(node) is _Known:
                known.hits += 1
                end = node
            else:
                if known.results >= (self._most_results if known.hits else min(tries, self._most_results)):
                    self._forget(known)
                end = self._make(known, seen, work, errors)
            known.last = seen, end
        result: T = end.result()
        return result

    def kept(self, name: str, key: Hashable, make: Callable[[], T]) -> T:
        """Return ``make()``, computed once per ``name`` and ``key``. The result must depend only on ``name`` and
        ``key``.
        """
        with self._lock:
            made = self._kept.setdefault(name, {})
            if key not in made:
                value = make()
                if len(made) >= self._most_results:
                    del made[next(iter(made))]
                made[key] = value
            result: T = made[key]
        return result

    def _begun(self, key: Hashable) -> _Judgement:
        if len(self._judgements) >= self._most_judgements:
            del self._judgements[next(iter(self._judgements))]
        known = self._judgements[key] = _Judgement()
        return known

    def _make(
        self, known: _Judgement, subject: Any, work: Callable[[Any], Any], errors: tuple[type[Exception], ...]
    ) -> _Known:
        notes: Notes = {}
        try:
            noted = NotedFacts(subject, notes) if isinstance(subject, Facts) else subject.noting(notes)
            end = _Known(work(noted))
        except errors as error:
            end = _Known(error=error)
        if known.begin is None or not _add(known.begin, notes, end):
            known.begin, known.results = _way(notes.items(), end), 0
        known.results += 1
        return end

    def _forget(self, known: _Judgement) -> None:
        scattered = known.hits < known.results
        known.rest = max(self._most_results, 2 * known.rest) if scattered else 0
        known.begin, known.results, known.hits, known.resting = None, 0, 0, known.rest

    def __reduce__(self) -> tuple[type[Memory], tuple[int, int]]:
        return (type(self), (self._most_results, self._most_judgements))


def _way(notes: Iterable[tuple[Hashable, Hashable]], end: _Known) -> _Asked | _Known:
    node: _Asked | _Known = end
    for question, token in reversed(tuple(notes)):
        node = _Asked(question, {token: node})
    return node


def _add(begin: _Asked | _Known, notes: Notes, end: _Known) -> bool:
    node: _Asked | _Known | None = begin
    steps: Iterator[tuple[Hashable, Hashable]] = iter(notes.items())
    for number, (question, token) in enumerate(steps, 1):
        if not isinstance(node, _Asked) or node.question != question:
            return False
        if token not in node.then:
            node.then[token] = _way(islice(notes.items(), number, None), end)
            return True
        node = node.then[token]
    return False
