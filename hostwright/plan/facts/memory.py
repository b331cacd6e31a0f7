"""What was judged in a run, so that hosts which answer alike are judged once.

A judgement is a pure function of what is known of a host: its answers, and what else it asks for. Which of these it
reads is not declared anywhere but noted while it runs, each with what was there. Another host of which the same is
known, as far as that judgement would ask, gets the same result; one that differs only in what nobody asked for, too.

A judgement may make others. What these read, it reads. ``judged`` is for one of them:

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

It is a value that a run holds: nothing of it outlives the run or is written anywhere, and what it keeps is bounded.
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

MOST_RESULTS = 64  #: our choice, of one judgement: a fleet in which more differ in what it reads is judged as before
MOST_JUDGEMENTS = 8192  #: our choice: a host with all roles has some hundred


@dataclass(slots=True)
class _Known:
    """The end of a way through the questions of a judgement: its result, or what it raised."""

    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.value


@dataclass(slots=True)
class _Asked:
    """A question that a judgement reads next, and what follows upon each token."""

    question: Hashable
    then: dict[Hashable, _Asked | _Known] = field(default_factory=dict)


@dataclass(slots=True)
class _Judgement:
    """All that is known of one judgement. One of which no two hosts have the same result rests: to note what it reads
    costs more than it saves. It begins anew later, since the next hosts may be alike."""

    begin: _Asked | _Known | None = None
    results: int = 0
    hits: int = 0  #: how often a result was used again
    resting: int = 0  #: how many times more it is made without being remembered
    rest: int = 0  #: how long its last rest was
    last: tuple[object, _Known] | None = None  #: the subject judged last, which may come again, and its result


class Memory:
    """The judgements of a run. Usable from any thread: each is made once, while the others wait for it.

    A copy, or one that is sent to another process, begins empty.
    """

    def __init__(self, most_results: int = MOST_RESULTS, most_judgements: int = MOST_JUDGEMENTS):
        self._most_results, self._most_judgements = most_results, most_judgements
        self._judgements: dict[Hashable, _Judgement] = {}
        self._kept: dict[str, dict[Hashable, Any]] = {}
        self._lock = threading.RLock()

    @property
    def turn(self) -> AbstractContextManager[object]:
        """The time in which a thread judges one host. In it, the thread waits for other threads once, and not again in
        each of some hundred judgements: with many threads, this waiting takes an eighth of an audit's processor time.
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
        """``work(subject)``, done once for all subjects with the same answers to the questions that it reads.

        A subject is ``Facts`` or anything with their two members: ``token``, which identifies an answer, and
        ``noting(notes)``, a copy that notes the token of each question that is read.

        ``key`` names the judgement: equal keys must mean equal work. ``errors`` are results, too; another exception is
        not remembered. After ``tries`` results, none of which was of use again, it is made without being remembered for
        a while: fewer are enough for one that reads so much that to note it costs more than the work.
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
        """What ``make`` returns, which depends on nothing but ``name`` and ``key``: made once. Of each name, so many
        are kept as of the results of a judgement."""
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
        """Begin anew; where no result was of use, after a rest that is twice as long as the one before."""
        scattered = known.hits < known.results
        known.rest = max(self._most_results, 2 * known.rest) if scattered else 0
        known.begin, known.results, known.hits, known.resting = None, 0, 0, known.rest

    def __reduce__(self) -> tuple[type[Memory], tuple[int, int]]:
        return (type(self), (self._most_results, self._most_judgements))


def _way(notes: Iterable[tuple[Hashable, Hashable]], end: _Known) -> _Asked | _Known:
    """The questions in order, each upon the token of the one before, and the end."""
    node: _Asked | _Known = end
    for question, token in reversed(tuple(notes)):
        node = _Asked(question, {token: node})
    return node


def _add(begin: _Asked | _Known, notes: Notes, end: _Known) -> bool:
    """Add another way; ``False`` where it does not begin as those before: then its judgement is no function of what it
    reads in order, such as one over a set, and begins anew."""
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
