"""A known failure as data: its messages in tool output, its signs on a host, and how to fix it."""

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

EVIDENCE_CHARACTERS = 300  #: maximum characters kept of each line of evidence

_GROUP = Pattern(r"\(\?P<(\w+)>")
_WORD = Pattern(r"[A-Z_]+")
_CHOICE = Pattern(r"\{([^{}|]*)\|([^{}|]*)\}")

#: root cause: tried first, since it causes the other messages in an output
#: cause: tried in the order of layers, and within a layer in the order of the rules
#: consequence: tried after all causes, since several causes lead to the message
#: wrapper: tried next; reports only that something failed (dpkg's last line, "Job for UNIT failed")
#: general: tried last; many causes lead to the message, or successful installations print it too
Weight = Literal["root cause", "cause", "consequence", "wrapper", "general"]


@dataclass(frozen=True, slots=True)
class Sign:
    """How a failure is recognised on a host.

    ``seen`` is a pure function that yields the evidence, preferably output of the host. It yields nothing if the host
    does not have the failure, and raises ``Unread`` if it cannot decide: a check that failed is never reported as a
    fault of the host. The first paragraph of its docstring is the sentence in the documentation on how the failure is
    recognised.

    ``probes`` are needed besides the probes of the role's states. ``grave`` failures stop work, now or soon; others are
    warnings. ``provision`` is true if ``hostwright provision`` fixes the failure.
    """

    layer: str
    seen: Callable[[AuditContext], Iterable[str]]
    probes: tuple[Probe, ...] = ()
    grave: bool = True
    provision: bool = False


@dataclass(frozen=True, slots=True)
class Covers:
    """Assigns evidence of other rules to this rule: the lines that contain one of ``texts``.

    A layer uses it for a failure of a lower layer that it identifies more precisely. The other rules report the
    remaining lines.
    """

    rules: tuple[str, ...]
    texts: Callable[[AuditContext], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Variant:
    """Other sentences for a rule, used if the regular expression ``pattern`` matches the evidence.

    An empty sentence is replaced by the rule's own. The first variant that matches is used.
    """

    pattern: str
    cause: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class FailureRule:
    """One known failure.

    ``pattern`` is a regular expression to search for in outputs; empty if no message identifies the failure. A match is
    ignored if ``unless`` matches the same lines. The rule does not apply to an output that ``narrower`` matches
    anywhere: such an output has a more precise message, or another cause. ``hostwright.common.untrusted.Pattern``
    compiles the expressions, case-insensitive and with ``^`` and ``$`` at the ends of each line.

    Lines near the match that ``beside`` matches are added to the evidence: they name the other package, version or
    card. ``closing`` matches messages that only report the failure, mostly the last line of the surrounding tool. It is
    tried after the patterns of all causes, so that a line with the reason comes first.
    """

    name: str
    pattern: str
    cause: str  #: what went wrong: a sentence without a full stop
    cure: str  #: what to do now: a sentence without a full stop
    source: str  #: origin of message and fix: a file of the tool's source, or a public report
    unless: str = ""  #: a regular expression: a match with this text in the same lines is ignored
    #: ``True``: may pass without a fix, so the step is retried (``apply.jobs.transient``). ``False``: never retry,
    #: whatever follows in the output. ``None``: no opinion
    transient: bool | None = None
    sign: Sign | None = None  #: how the failure is recognised on a host, if possible
    weight: Weight = "cause"
    closing: str = ""  #: further messages, which report the failure but not the reason
    narrower: str = ""  #: a regular expression: an output that contains it has another cause
    beside: str = ""  #: a regular expression for lines near a match that hold the other half of the message
    treatment: Treatment | None = None  #: how a rebuild treats the failure, if not by a repair
    covers: Covers | None = None
    #: regular expressions with named groups. The text of a group ``module`` in the matching lines replaces the word
    #: MODULE in ``cause`` and ``cure``. Several names are joined by spaces, as in commands. ``{MODULE|some module}``
    #: becomes the part before the bar if every name in it is known, else the part after the bar
    names: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()  #: other sentences for some of the messages

    def sentences(self, *evidence: str) -> tuple[str, str]:
        """``cause`` and ``cure`` for this evidence, with names filled in."""
        fitting = (each for each in self.variants if any(_compiled(each.pattern).search(one) for one in evidence))
        variant = next(fitting, None)
        cause, cure = (variant.cause, variant.cure) if variant else ("", "")
        values = self._values(evidence)
        return _filled(cause or self.cause, values), _filled(cure or self.cure, values)

    def _values(self, evidence: tuple[str, ...]) -> dict[str, str]:
        """The names in this evidence, by the word that each replaces; empty if unknown."""
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
        """The command that explains the failure."""
        return f"hostwright doctor --explain {self.name}"

    def finding(self, evidence: tuple[str, ...]) -> Finding:
        """This failure as a finding with these lines as evidence. A rule without a sign is grave and has no layer."""
        sign = self.sign
        layer, grave, provision = (sign.layer, sign.grave, sign.provision) if sign else ("", True, False)
        lines = tuple(line.strip()[:EVIDENCE_CHARACTERS] for line in evidence)
        cause, cure = self.sentences(*evidence)
        return Finding(self.name, layer, grave, lines, cause, cure, provision, self.link)


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that matches an output, and the matching lines."""

    rule: FailureRule
    evidence: str

    @property
    def cause(self) -> str:
        """What went wrong, as a sentence without a full stop."""
        return self.rule.sentences(self.evidence)[0]

    @property
    def cure(self) -> str:
        """What to do now, as a sentence without a full stop."""
        return self.rule.sentences(self.evidence)[1]


def in_general(sentence: str) -> str:
    """A rule's sentence as the documentation prints it, without names from evidence."""
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
    """The named groups of these regular expressions."""
    return tuple(dict.fromkeys(group[1] for pattern in names for group in _GROUP.finditer(pattern)))


@cache
def _compiled(pattern: str) -> Pattern:
    return Pattern(f"(?im){pattern}")
