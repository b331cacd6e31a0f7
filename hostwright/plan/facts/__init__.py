"""Questions to a host and its answers: a ``Probe`` asks, ``Facts`` are what is known by its answers.

What is judged by facts can be remembered for other hosts that answer alike: ``facts.memory``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

from hostwright.common.errors import NotAnswered
from hostwright.plan.state_identity import NO_IDENTITY

PROBE_CAP_BYTES = 64 * 1024  #: an answer's default cap, so that a small text file comes back whole


@dataclass(frozen=True, slots=True)
class Probe:
    """One read-only question to a host, in POSIX sh. Probes that are equal are asked once per host. ``script`` runs in
    a subshell without standard input; what it starts ends before it does. Its standard error is discarded, and at most
    ``cap_bytes`` of its output are kept. ``root`` runs it as root.

    One with a ``part`` may be answered by a pass instead, together with others; its answer is the same.

    One that is ``shared`` may have its subshell together with others, which saves a process. It must leave that as it
    was: no exit, change of directory, environment or trap, and of the options only ``-f``. It reads no variable before
    it sets it.
    """

    script: str
    root: bool = False
    cap_bytes: int = PROBE_CAP_BYTES
    part: PassPart | None = field(default=None, compare=False, repr=False, metadata=NO_IDENTITY)
    shared: bool = field(default=False, compare=False, repr=False, metadata=NO_IDENTITY)
    #: its hash: facts are looked up by their probes some thousand times for each host of an audit
    _hash: int = field(init=False, compare=False, repr=False, metadata=NO_IDENTITY)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.script, self.root, self.cap_bytes)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Probe], tuple[str, bool, int]]:
        """In another process the question is the same; a part is how this one may ask it, and holds functions."""
        return Probe, (self.script, self.root, self.cap_bytes)


@dataclass(frozen=True, slots=True)
class PassPart:
    """A probe's part of a pass: the words that it adds to what is asked (paths, units), and how it reads its answer
    from what the pass has found for them. ``None`` is something that cannot be told from that: then it is asked alone.
    """

    kind: Pass
    words: tuple[str, ...]
    read: Callable[[Mapping[str, str]], Answer | None]


class Pass(ABC):
    """A kind of probes that one run of a tool answers together, for a fraction of what each costs by itself."""

    #: the highest exit status with which its output still answers; with a higher one, each probe is asked alone
    fails_with = 0

    @abstractmethod
    def script(self, words: Sequence[str]) -> str:
        """The command that asks for all these words. Its standard error is discarded."""

    def differing(self, _word: str, /) -> str:
        """What its output holds where the probe of a word has to be asked alone; empty: no output says that."""
        return ""

    @abstractmethod
    def found(self, words: Sequence[str], text: str) -> Mapping[str, str]:
        """What its output says of each word, of some perhaps nothing. Raises ``ValueError`` where it says nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a host to one probe: exit status, output (untrusted text), and whether it was cut at the cap.

    ``late_s`` is 0, or the seconds after which the probe was ended since it had not ended by itself: then nothing is
    known, and ``Facts`` hands no such answer out.
    """

    status: int
    text: str
    truncated: bool = False
    late_s: int = 0

    @property
    def ok(self) -> bool:
        """Whether the script exited with 0."""
        return self.status == 0

    def strip(self) -> str:
        """The output without white space at its ends."""
        return self.text.strip()


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class TableRow:
    """The question of who reads one entry of a table that an answer holds, and nothing else of that answer."""

    probe: Probe
    read: Callable[[str], Mapping[Any, Any]]
    key: Hashable


@dataclass(frozen=True, slots=True)
class There:
    """The question of who asks only whether there is an answer to a probe."""

    probe: Probe


ALL = "all facts"  #: the question of who reads all facts, and not the answers to certain probes
_ABSENT: Hashable = ()  #: the token of a probe that was not asked
_SHORT = 64  #: our choice: characters of an answer that is part of its token; of a longer one its hash is


class Facts(Mapping[Probe, Answer]):
    """The answers of one host, by probe. A probe that was not asked is a ``KeyError``: a mistake of the program. One
    that did not answer in time is a ``NotAnswered``; it is among ``late``, and not among the facts.

    >>> facts = Facts({Probe("df /"): Answer(137, "", late_s=30)})
    >>> Probe("df /") in facts
    False
    >>> facts[Probe("df /")]
    Traceback (most recent call last):
    hostwright.common.errors.NotAnswered: a probe did not answer within 30 s: df /
    """

    __slots__ = ("_answers", "_late", "_tokens")

    def __init__(self, answers: Mapping[Probe, Answer]):
        self._answers = {probe: answer for probe, answer in answers.items() if not answer.late_s}
        self._late = {probe: answer for probe, answer in answers.items() if answer.late_s}
        self._tokens: dict[Hashable, Hashable] = {}

    @property
    def late(self) -> Mapping[Probe, Answer]:
        """What was asked and did not end by itself."""
        return self._late

    def __getitem__(self, probe: Probe) -> Answer:
        if probe in self._late:
            raise NotAnswered(probe.script, self._late[probe].late_s)
        return self._answers[probe]

    def __contains__(self, probe: object) -> bool:
        return probe in self._answers

    def __iter__(self) -> Iterator[Probe]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def table(self, probe: Probe, read: Callable[[str], Mapping[K, V]]) -> Mapping[K, V]:
        """What ``read``, which is pure, makes of an answer's text. Where it is noted what is read of facts, only those
        entries are noted that are asked for by their key, and the whole answer only where somebody goes through all.

        An entry's ``repr`` must hold all of it.
        """
        return read(self[probe].text)

    def token(self, question: Hashable) -> Hashable:
        """A key for what is known of a probe, of a ``TableRow``, of ``There`` or of ``ALL``: one for equal answers,
        and for no others."""
        token = self._tokens.get(question)
        if token is None:
            token = self._tokens[question] = self._token(question)
        return token

    def _token(self, question: Hashable) -> Hashable:
        if isinstance(question, There):
            late = self._late.get(question.probe)
            return ("late", late.late_s) if late else question.probe in self._answers
        if isinstance(question, TableRow):
            answer = self._answers.get(question.probe)
            return self.token(question.probe) if answer is None else _entry(question, answer.text)
        if not isinstance(question, Probe):
            return tuple((probe, self.token(probe)) for probe in (*self._answers, *self._late))
        answer = self._answers.get(question) or self._late.get(question)
        if answer is None:
            return _ABSENT
        known: str | bytes = answer.text
        if len(answer.text) > _SHORT:
            known = blake2b(answer.text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        return (answer.status, answer.truncated, answer.late_s, known)


def _entry(row: TableRow, text: str) -> Hashable:
    try:
        return repr(row.read(text)[row.key])
    except KeyError:
        return _ABSENT
