"""``Probe``: a read-only command for a host. ``Facts``: a host's answers to its probes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

from hostwright.common.errors import NotAnswered
from hostwright.plan.state_identity import NO_IDENTITY

PROBE_CAP_BYTES = 64 * 1024  #: default maximum size in bytes of the answer to a probe


@dataclass(frozen=True, slots=True)
class Probe:
    """A read-only POSIX sh script that returns a fact of a host. Equal probes run once per host.

    ``script`` runs in a subshell without standard input, with ``root`` as root. Its child processes must end before the
    script ends. Standard error is discarded, and at most ``cap_bytes`` of the output are kept. If ``part`` is set, a
    ``Pass`` answers the probe instead of ``script``.

    A ``shared`` probe may run in one subshell with other probes, which saves a process. Its script must not exit or
    change the subshell's directory, environment, traps or options (except ``-f``), and must set each variable before
    reading it.
    """

    script: str
    root: bool = False
    cap_bytes: int = PROBE_CAP_BYTES
    part: PassPart | None = field(default=None, compare=False, repr=False, metadata=NO_IDENTITY)
    shared: bool = field(default=False, compare=False, repr=False, metadata=NO_IDENTITY)
    #: hash of the probe. An audit looks up probes some thousand times per host.
    _hash: int = field(init=False, compare=False, repr=False, metadata=NO_IDENTITY)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.script, self.root, self.cap_bytes)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Probe], tuple[str, bool, int]]:
        """Leave out ``part``, because it contains functions, which cannot be pickled."""
        return Probe, (self.script, self.root, self.cap_bytes)


@dataclass(frozen=True, slots=True)
class PassPart:
    """The part of one probe in a ``Pass``: its arguments, and the function that makes its answer.

    ``words`` are the arguments (paths, units). ``read`` converts a mapping of argument → result to the answer, or
    returns ``None`` if the probe must run on its own.
    """

    kind: Pass
    words: tuple[str, ...]
    read: Callable[[Mapping[str, str]], Answer | None]


class Pass(ABC):
    """A command that answers many probes in one run, which is much cheaper than separate runs."""

    #: maximum exit status with valid output; after a higher status, each probe runs alone
    fails_with = 0

    @abstractmethod
    def script(self, words: Sequence[str]) -> str:
        """Return the shell command for the arguments ``words``. Its standard error is discarded."""

    def differing(self, _word: str, /) -> str:
        """Return the text that the output contains if the probe of ``_word`` must run on its own; may be empty."""
        return ""

    @abstractmethod
    def found(self, words: Sequence[str], text: str) -> Mapping[str, str]:
        """Parse the command's output ``text`` to argument → result, without arguments that have no result.

        Raises ``ValueError`` for unusable output.
        """


@dataclass(frozen=True, slots=True)
class Answer:
    """A host's answer to a probe: exit status, untrusted output, and whether the output was truncated.

    ``late_s`` is the number of seconds after which a hanging probe was killed, else 0.
    """

    status: int
    text: str
    truncated: bool = False
    late_s: int = 0

    @property
    def ok(self) -> bool:
        """Whether the probe's script exited with 0."""
        return self.status == 0

    def strip(self) -> str:
        """Return the output without leading and trailing white space."""
        return self.text.strip()


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class TableRow:
    """One entry in an answer that ``Facts.table`` parses, as a dependency of a cached judgement (``facts.memory``)."""

    probe: Probe
    read: Callable[[str], Mapping[Any, Any]]
    key: Hashable


@dataclass(frozen=True, slots=True)
class There:
    """Whether a probe has an answer, as a dependency of a cached judgement (``facts.memory``)."""

    probe: Probe


ALL = "all facts"  #: name of the dependency on all facts
_ABSENT: Hashable = ()  #: token for a probe that did not run
_SHORT = 64  #: maximum number of characters of an answer that is its own token (our choice); longer answers are hashed


class Facts(Mapping[Probe, Answer]):
    """The answers of one host to its probes.

    Reading a probe that did not run raises ``KeyError``. Reading a probe that hung raises ``NotAnswered``.

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
        """The probes that hung and were killed, with their answers."""
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
        """Parse the text of a probe's answer with ``read``, which must be pure.

        A judgement that reads the table by key depends only on the entries that it reads. Different entries must have
        different ``repr``.
        """
        return read(self[probe].text)

    def token(self, question: Hashable) -> Hashable:
        """Return a token for the current value of a dependency: a probe, ``TableRow``, ``There`` or ``ALL``.

        Two tokens are equal if and only if the values are equal.
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
