"""A known failure as data: its messages in the output of tools, its symptoms on a host, and its fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from hostwright.audit.failures.treatment import Treatment
from hostwright.audit.judging.context import AuditContext
from hostwright.common.errors import Finding
from hostwright.common.untrusted import Match, Pattern
from hostwright.plan.model import Probe

EVIDENCE_CHARACTERS = 300  #: maximum number of characters to keep of each line of evidence

_GROUP = Pattern(r"\(\?P<(\w+)>")
_WORD = Pattern(r"[A-Z_]+")
_CHOICE = Pattern(r"\{([^{}|]*)\|([^{}|]*)\}")

#: kind of message that a rule matches, in the order in which rules are tried
Weight = Literal["root cause", "cause", "consequence", "wrapper", "general"]


@dataclass(frozen=True, slots=True)
class Sign:
    """The symptom of a failure on a host, and the probes that find it.

    ``seen`` is a pure function that yields the evidence, preferably lines of the host's own output. It yields nothing
    if the host does not have the failure, and raises ``Unread`` if it cannot decide. The first paragraph of the
    docstring of ``seen`` is printed in the documentation.

    ``probes`` are probes that ``seen`` needs in addition to those of the role's states. ``grave`` failures stop work;
    others are warnings. ``provision`` is true if ``hostwright provision`` fixes the failure.
    """

    layer: str
    seen: Callable[[AuditContext], Iterable[str]]
    probes: tuple[Probe, ...] = ()
    grave: bool = True
    provision: bool = False


@dataclass(frozen=True, slots=True)
class Covers:
    """Lines that the less precise ``rules`` must not report as evidence: all lines with one of ``texts``.

    The rule that contains this object identifies a failure in a lower layer more precisely than ``rules`` of that
    layer.
    """

    rules: tuple[str, ...]
    texts: Callable[[AuditContext], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Variant:
    """Another cause and fix for a rule, used if the regular expression ``pattern`` matches the evidence.

    If ``cause`` or ``cure`` is empty, the rule's own text is used. The first variant that matches is used.
    """

    pattern: str
    cause: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A known failure: its messages in an output, its symptoms on a host, its cause and its fix.

    ``pattern`` is a regular expression for messages in an output; empty if no message identifies the failure. A match
    is ignored if ``unless`` matches the same lines. The rule does not apply to an output in which ``narrower`` matches
    anywhere. All expressions are compiled by ``hostwright.common.untrusted.Pattern``. They ignore case, and ``^`` and
    ``$`` match at the ends of each line.

    Lines near the match that ``beside`` matches are added to the evidence, for example the other package or version.
    ``closing`` matches messages that report the failure without a reason. ``closing`` is tried after the patterns of
    all causes.
    """

    name: str
    pattern: str
    cause: str  #: cause of the failure, as a sentence without a full stop
    cure: str  #: fix of the failure, as a sentence without a full stop
    source: str  #: source of the message and fix, such as a source file or public report
    unless: str = ""
    #: whether the failed step is retried. With ``None``, this rule does not decide.
    transient: bool | None = None
    sign: Sign | None = None  #: symptom of the failure on a host; ``None`` if only a message identifies the failure
    weight: Weight = "cause"
    closing: str = ""
    narrower: str = ""
    beside: str = ""
    #: treatment of the failure in a rebuild, if provisioning cannot reliably fix the failure
    treatment: Treatment | None = None
    covers: Covers | None = None
    #: regular expressions whose named groups replace words in ``cause`` and ``cure``. The group ``module`` replaces
    #: MODULE, and without a match, ``{MODULE|some module}`` becomes ``some module``.
    names: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()

    def sentences(self, *evidence: str) -> tuple[str, str]:
        """Return the cause and the fix for ``evidence``, with names from the evidence filled in.

        Both come from the first variant that matches, or else from ``cause`` and ``cure``.
        """
        fitting = (each for each in self.variants if any(_compiled(each.pattern).search(one) for one in evidence))
        variant = next(fitting, None)
        cause, cure = (variant.cause, variant.cure) if variant else ("", "")
        values = self._values(evidence)
        return _filled(cause or self.cause, values), _filled(cure or self.cure, values)

    def _values(self, evidence: tuple[str, ...]) -> dict[str, str]:
        values: dict[str, dict[str, None]] = {group: {} for group in _groups(self.names)}
        for lines in evidence:
            first: dict[str, str] = {}
            for match in filter(None, (_compiled(pattern).search(lines) for pattern in self.names)):
                first = {group: value for group, value in match.groupdict().items() if value} | first
            for group, value in first.items():
                values.setdefault(group, {})[value] = None
        return {group.upper(): " ".join(some) for group, some in values.items()}

    @property
    def link(self) -> str:
        """The command that prints the explanation of this failure."""
        return f"hostwright doctor --explain {self.name}"

    def finding(self, evidence: tuple[str, ...]) -> Finding:
        """Return a finding of this failure with ``evidence``. If the rule has no ``Sign``, the finding is grave and has
        no layer.
        """
        sign = self.sign
        layer, grave, provision = (sign.layer, sign.grave, sign.provision) if sign else ("", True, False)
        lines = tuple(line.strip()[:EVIDENCE_CHARACTERS] for line in evidence)
        cause, cure = self.sentences(*evidence)
        return Finding(self.name, layer, grave, lines, cause, cure, provision, self.link)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure rule that matches an output, and the matching lines as ``evidence``."""

    rule: FailureRule
    evidence: str

    @property
    def cause(self) -> str:
        """Cause of the failure, as a sentence without a full stop."""
        return self.rule.sentences(self.evidence)[0]

    @property
    def cure(self) -> str:
        """Fix of the failure, as a sentence without a full stop."""
        return self.rule.sentences(self.evidence)[1]


def in_general(sentence: str) -> str:
    """Return a rule's ``sentence`` for the documentation, with general words in place of names from evidence."""
    return _chosen(sentence, lambda choice: choice[1])


def _filled(sentence: str, values: Mapping[str, str]) -> str:
    unknown = [word for word, value in values.items() if not value]
    sentence = _chosen(sentence, lambda choice: choice[2 if any(word in choice[1] for word in unknown) else 1])
    return _replaced(_WORD, sentence, lambda word: values.get(word[0]) or word[0])


def _chosen(sentence: str, choose: Callable[[Match], str]) -> str:
    return _replaced(_CHOICE, sentence, choose)


def _replaced(pattern: Pattern, sentence: str, replacement: Callable[[Match], str]) -> str:
    parts, end = [], 0
    for match in pattern.finditer(sentence):
        parts += [sentence[end : match.start()], replacement(match)]
        end = match.end()
    return "".join([*parts, sentence[end:]])


@cache
def _groups(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group[1] for pattern in names for group in _GROUP.finditer(pattern)))


@cache
def _compiled(pattern: str) -> Pattern:
    return Pattern(f"(?im){pattern}")
