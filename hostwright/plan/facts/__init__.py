"""``Probe``: a read-only command for a host. ``Facts``: the answers of one host.

``facts.memory`` caches results computed from facts for hosts with the same answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

from hostwright.common.errors import NotAnswered
from hostwright.plan.state_identity import NO_IDENTITY

PROBE_CAP_BYTES = 64 * 1024  #: default limit of an answer, enough for a small text file


@dataclass(frozen=True, slots=True)
class Probe:
    """A read-only POSIX sh script that returns a fact of a host. Equal probes run once per host.

    ``script`` runs in a subshell without standard input; its child processes must end before it does. Its standard
    error is discarded, and at most ``cap_bytes`` of its output are kept. ``root`` runs it as root. A probe with a
    ``part`` may be answered by a ``Pass``, together with other probes; the answer is the same as by ``script``.

    A ``shared`` probe may run in one subshell with other probes, which saves a process. It must leave the subshell
    unchanged: no exit, and no change of directory, environment, trap or options (except ``-f``). It sets each variable
    before it reads it.
    """

    script: str
    root: bool = False
    cap_bytes: int = PROBE_CAP_BYTES
    part: PassPart | None = field(default=None, compare=False, repr=False, metadata=NO_IDENTITY)
    shared: bool = field(default=False, compare=False, repr=False, metadata=NO_IDENTITY)
    #: cached hash: an audit looks up facts by probe some thousand times per host
    _hash: int = field(init=False, compare=False, repr=False, metadata=NO_IDENTITY)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.script, self.root, self.cap_bytes)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Probe], tuple[str, bool, int]]:
        """Pickle only the script and its limits: ``part`` contains functions, and is not needed in another process."""
        return Probe, (self.script, self.root, self.cap_bytes)


@dataclass(frozen=True, slots=True)
class PassPart:
    """The part of one probe in a ``Pass``.

    ``words`` are its arguments for the pass (paths, units). ``read`` makes the probe's answer from the results of the
    pass; ``None`` means that the probe must run on its own.
    """

    kind: Pass
    words: tuple[str, ...]
    read: Callable[[Mapping[str, str]], Answer | None]


class Pass(ABC):
    """A tool that answers many probes in one run, for a fraction of the cost of separate runs."""

    #: highest exit status with valid output; above it, each probe runs on its own
    fails_with = 0

    @abstractmethod
    def script(self, words: Sequence[str]) -> str:
        """The command that queries all these words. Its standard error is discarded."""

    def differing(self, _word: str, /) -> str:
        """A text that appears in the output if the word's probe must run on its own; empty if the tool prints none."""
        return ""

    @abstractmethod
    def found(self, words: Sequence[str], text: str) -> Mapping[str, str]:
        """The result for each word in the output; a word may have none. Raises ``ValueError`` for unusable output."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a host to one probe: exit status, output (untrusted text), and whether the output was truncated.

    ``late_s`` is 0, or the seconds after which a hanging probe was killed; then the answer is unknown, and ``Facts``
    does not return it.
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
    """A dependency on one entry of a table in an answer, not on the rest of the answer."""

    probe: Probe
    read: Callable[[str], Mapping[Any, Any]]
    key: Hashable


@dataclass(frozen=True, slots=True)
class There:
    """A dependency on the existence of a probe's answer, not on its content."""

    probe: Probe


ALL = "all facts"  #: a dependency on all facts
_ABSENT: Hashable = ()  #: the token of a probe that did not run
_SHORT = 64  #: our choice: longest answer, in characters, that is its own token; longer answers are hashed


class Facts(Mapping[Probe, Answer]):
    """The answers of one host, by probe.

    A probe that did not run raises ``KeyError``, which is a bug. A probe that hung raises ``NotAnswered``; it is in
    ``late`` and not among the facts.

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
        """Probes that hung, with their answers."""
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
        """Return ``read(text)`` for an answer's text; ``read`` must be pure.

        ``NotedFacts`` records only the entries that are read by key, and the whole answer only for an iteration. An
        entry's ``repr`` must represent it completely.
        """
        return read(self[probe].text)

    def token(self, question: Hashable) -> Hashable:
        """A key for the value of a dependency (a probe, ``TableRow``, ``There`` or ``ALL``). Two keys are equal if and
        only if the values are equal.
        """
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
