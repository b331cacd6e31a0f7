"""Questions to a host and its answers: a ``Probe`` asks, ``Facts`` are what is known by its answers.

What is judged by facts can be remembered for other hosts that answer alike: ``facts.memory``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from hostwright.common.errors import NotAnswered

PROBE_CAP_BYTES = 64 * 1024  #: an answer's default cap, so that a small text file comes back whole


@dataclass(frozen=True, slots=True)
class Probe:
    """One read-only question to a host, in POSIX sh. Probes that are equal are asked once per host. ``script`` runs in
    a subshell without standard input; what it starts ends before it does. Its standard error is discarded, and at most
    ``cap_bytes`` of its output are kept. ``root`` runs it as root.
    """

    script: str
    root: bool = False
    cap_bytes: int = PROBE_CAP_BYTES


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

    def token(self, question: Hashable) -> Hashable:
        """A key for what is known of a probe, or of ``ALL``: the same for equal answers, and for no others."""
        token = self._tokens.get(question)
        if token is None:
            token = self._tokens[question] = self._token(question)
        return token

    def _token(self, question: Hashable) -> Hashable:
        if not isinstance(question, Probe):
            return tuple((probe, self.token(probe)) for probe in (*self._answers, *self._late))
        answer = self._answers.get(question) or self._late.get(question)
        if answer is None:
            return _ABSENT
        known: str | bytes = answer.text
        if len(answer.text) > _SHORT:
            known = blake2b(answer.text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        return (answer.status, answer.truncated, answer.late_s, known)
