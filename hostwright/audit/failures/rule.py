"""One known failure as data: how it shows in a tool's output, on a host or both, and what to do about it."""

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

EVIDENCE_CHARACTERS = 300  #: of each line of a finding's evidence

_GROUP = Pattern(r"\(\?P<(\w+)>")
_WORD = Pattern(r"[A-Z_]+")
_CHOICE = Pattern(r"\{([^{}|]*)\|([^{}|]*)\}")

#: root cause: tried first, for whatever else an output says follows from it · cause: tried in the order of layers, and
#: of the rules within a layer · consequence: tried after all causes, for several of them lead to this message
#: · wrapper: tried after these, for it only says that something failed (dpkg's last line, "Job for UNIT failed")
#: · general: tried last, for many causes lead to it, or successful installations print it too
Weight = Literal["root cause", "cause", "consequence", "wrapper", "general"]


@dataclass(frozen=True, slots=True)
class Sign:
    """How a failure is recognised on a host.

    ``seen`` is a pure function: it yields the evidence, where possible the host's own output, and nothing where the
    host does not have the failure. It raises ``Unread`` where it cannot tell: "could not be checked" never means "the
    host is faulty". Its docstring is the sentence with which the documentation says how the failure is recognised.
    ``probes`` are the probes that it needs beside those of the role's states. ``grave`` failures stop work, or will
    soon; others are warnings. ``provision`` tells whether ``invoke provision`` fixes it.
    """

    layer: str
    seen: Callable[[AuditContext], Iterable[str]]
    probes: tuple[Probe, ...] = ()
    grave: bool = True
    provision: bool = False


@dataclass(frozen=True, slots=True)
class Covers:
    """The part of other rules' evidence that belongs to this rule: the lines that contain one of these ``texts``.

    A layer uses it where it knows a failure of a lower layer more precisely; the other rules then report the rest.
    """

    rules: tuple[str, ...]
    texts: Callable[[AuditContext], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Variant:
    """Other sentences of a rule, for evidence in which this regular expression is found: a condition that the evidence
    decides is not left to the reader. An empty sentence is the rule's own. The first variant that fits counts.
    """

    pattern: str
    cause: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class FailureRule:
    """One known failure. ``pattern`` is a regular expression to search for in outputs; empty: no message tells it.

    What it matches counts unless ``unless`` is also in the lines of the match. Both are read by
    ``hostwright.common.untrusted.Pattern``, in upper and lower case, with ``^`` and ``$`` at each line's ends. Nothing
    counts of an output that has ``narrower`` anywhere: a line of it says more than the rule, or names another cause.
    Lines near the match that have ``beside`` are part of the evidence: they name the other package, version or card.
    ``closing`` has the rule's wordings that only report the failure, mostly the last line of the tool around it: they
    are tried after the patterns of all causes, so that a line that gives the reason comes first, whosever it is.
    """

    name: str
    pattern: str
    cause: str  #: what went wrong, a sentence without a full stop
    cure: str  #: what to do now, likewise
    source: str  #: where message and fix come from: a file of the tool's source, or a public report
    unless: str = ""  #: a regular expression: a match in whose lines it is found is none
    #: whether it may pass without a fix: such a step is retried (``apply.jobs.transient``); false: no retry mends it,
    #: whatever the output says after it; none: it does not tell
    transient: bool | None = None
    sign: Sign | None = None  #: how it is recognised on a host, where it can be
    weight: Weight = "cause"
    closing: str = ""  #: further messages, which say that it failed and not why
    narrower: str = ""  #: a regular expression: an output in which it is found is of another cause
    beside: str = ""  #: a regular expression of the lines near a match that hold the other half of the message
    treatment: Treatment | None = None  #: what a rebuild does about it, where that is not a repair
    covers: Covers | None = None
    #: regular expressions with named groups. The text of a group ``module`` in the lines of a match replaces the word
    #: MODULE in ``cause`` and ``cure``; several evidences give several names, with blanks between them, as commands do.
    #: ``{MODULE|some module}`` is what stands before the bar where each name in it is known, else what follows the bar
    names: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()  #: other sentences, for some of its messages

    def sentences(self, *evidence: str) -> tuple[str, str]:
        """``cause`` and ``cure`` for these evidences, with the names in them."""
        fitting = (each for each in self.variants if any(_compiled(each.pattern).search(one) for one in evidence))
        variant = next(fitting, None)
        cause, cure = (variant.cause, variant.cure) if variant else ("", "")
        values = self._values(evidence)
        return _filled(cause or self.cause, values), _filled(cure or self.cure, values)

    def _values(self, evidence: tuple[str, ...]) -> dict[str, str]:
        """The names in these evidences, each under the word that it replaces; empty where none is known."""
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
        """The command that explains it."""
        return f"hostwright doctor --explain {self.name}"

    def finding(self, evidence: tuple[str, ...]) -> Finding:
        """This failure, recognised by these lines. One that only messages tell makes work fail, and has no layer."""
        sign = self.sign
        layer, grave, provision = (sign.layer, sign.grave, sign.provision) if sign else ("", True, False)
        lines = tuple(line.strip()[:EVIDENCE_CHARACTERS] for line in evidence)
        cause, cure = self.sentences(*evidence)
        return Finding(self.name, layer, grave, lines, cause, cure, provision, self.link)


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that an output matches, and the matching line."""

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
    """A rule's sentence as the documentation has it, where no evidence has names."""
    return _chosen(sentence, lambda choice: choice[1])


def _filled(sentence: str, values: Mapping[str, str]) -> str:
    """The sentence with these values in place of their words."""
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
