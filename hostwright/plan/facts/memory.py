"""Caches results of a run, so that they are computed once for hosts with the same answers.

A judgement is a pure function of a host's facts, such as the plan of a state. The facts that it reads are its
dependencies. They are not declared, but recorded with their values while the judgement runs. The result is reused for
another host whose recorded dependencies have the same values, even if other facts differ.

A judgement that calls other judgements also has their dependencies. Example with ``judged``:

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

A run owns its ``Memory``: nothing outlives the run or is written to disk, and its size is limited.
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

MOST_RESULTS = 64  #: our choice: cached results of one judgement
MOST_JUDGEMENTS = 8192  #: our choice; a host with all roles has some hundred


@dataclass(slots=True)
class _Known:
    """A leaf in the tree of a judgement's dependencies: the result, or the exception."""

    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.value


@dataclass(slots=True)
class _Asked:
    """An inner node: the next dependency that the judgement reads, and a child for each of its values."""

    question: Hashable
    then: dict[Hashable, _Asked | _Known] = field(default_factory=dict)


@dataclass(slots=True)
class _Judgement:
    """The cache of one judgement.

    If no two hosts share a result, the judgement is not cached for a while, because recording costs more than it saves.
    It is cached again later, because the next hosts may share results.
    """

    begin: _Asked | _Known | None = None
    results: int = 0
    hits: int = 0  #: number of reused results
    resting: int = 0  #: number of further calls without caching
    rest: int = 0  #: number of calls without caching last time
    last: tuple[object, _Known] | None = None  #: last subject and its result


class Memory:
    """The cache of a run. Thread-safe: each result is computed once, while other threads wait.

    A copy, or a pickled copy in another process, begins empty.
    """

    def __init__(self, most_results: int = MOST_RESULTS, most_judgements: int = MOST_JUDGEMENTS):
        self._most_results, self._most_judgements = most_results, most_judgements
        self._judgements: dict[Hashable, _Judgement] = {}
        self._kept: dict[str, dict[Hashable, Any]] = {}
        self._lock = threading.RLock()

    @property
    def turn(self) -> AbstractContextManager[object]:
        """A lock to hold while a thread computes all results of one host, so that it waits once instead of for each of
        some hundred judgements. With many threads, that waiting takes an eighth of an audit's CPU time.
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
        """Return ``work(subject)``, computed once for all subjects with the same values of the dependencies that it
        reads.

        A subject is ``Facts``, or has the same two members: ``token``, which identifies a value, and ``noting(notes)``,
        a copy that records the token of each dependency read.

        ``key`` identifies the judgement: equal keys must mean equal work. ``errors`` are cached like results; other
        exceptions are not. After ``tries`` results without any reuse, the judgement is not cached for a while. Use a
        low number for a judgement with so many dependencies that recording them costs more than the work.
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
        """Return ``make()``, computed once per ``name`` and ``key``; it must depend on nothing else. Each name keeps at
        most ``most_results`` values.
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
        """Clear the cache of a judgement. If no result was reused, rest for twice as many calls as last time."""
        scattered = known.hits < known.results
        known.rest = max(self._most_results, 2 * known.rest) if scattered else 0
        known.begin, known.results, known.hits, known.resting = None, 0, 0, known.rest

    def __reduce__(self) -> tuple[type[Memory], tuple[int, int]]:
        return (type(self), (self._most_results, self._most_judgements))


def _way(notes: Iterable[tuple[Hashable, Hashable]], end: _Known) -> _Asked | _Known:
    """A chain of nodes for these dependencies and their values, which ends in ``end``."""
    node: _Asked | _Known = end
    for question, token in reversed(tuple(notes)):
        node = _Asked(question, {token: node})
    return node


def _add(begin: _Asked | _Known, notes: Notes, end: _Known) -> bool:
    """Add another chain to the tree; ``False`` if it does not begin with the same dependencies.

    Then the judgement reads its dependencies in a varying order, for example over a set, and its cache is cleared.
    """
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
