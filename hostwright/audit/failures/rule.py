"""What one known failure looks like, as data: in a tool's output, on a host, or both; and what is done about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from hostwright.audit.failures.treatment import Treatment
from hostwright.audit.judging.look import Look
from hostwright.plan.model import Probe

DOCUMENT = "docs/failures.md"  #: where every rule has a section of its name; generated from the rules

#: root cause: whatever else an output says follows from it, in whichever layer it is met · cause: as its layer and its
#: place among that layer's rules have it · general: words that stand for many causes, or that good installations print
#: too, so that they count only where nothing else is known
Weight = Literal["root cause", "cause", "general"]


@dataclass(frozen=True, slots=True)
class Sign:
    """How a failure is recognised on a host.

    ``seen`` is a pure function: it yields the evidence, the host's own words where there are any, and nothing where
    the failure is not there. It raises ``Unread`` when it cannot tell: "the check could not run" is never "the host
    is bad". Its docstring is the sentence with which the documentation says how the failure is recognised.
    ``probes`` are questions of its own, asked beside those of the roles. ``grave`` failures stop work, or will at the
    next occasion; others want attention. ``provision`` tells whether ``invoke provision`` mends it.
    """

    layer: str
    seen: Callable[[Look], Iterable[str]]
    probes: tuple[Probe, ...] = ()
    grave: bool = True
    provision: bool = False


@dataclass(frozen=True, slots=True)
class Covers:
    """What of another rule's evidence belongs to the rule that says so: the lines with one of these ``texts`` in them.

    A layer tells so of a failure of a layer below it which it knows better; that one then says the rest.
    """

    rule: str
    texts: Callable[[Look], Iterable[str]]


@dataclass(frozen=True, slots=True)
class FailureRule:
    """One known failure. ``pattern`` is a regular expression that is searched for in outputs; empty: none tells it."""

    name: str
    pattern: str
    cause: str  #: what went wrong, a sentence without its full stop
    cure: str  #: what to do now, likewise
    source: str  #: where the message and its cure come from: a file of the tool's source, or a public report
    transient: bool = (
        False  #: it passes by itself: a step that may be repeated is (``hostwright.apply.jobs.transient``)
    )
    sign: Sign | None = None  #: how it is recognised on a host, where it can be
    weight: Weight = "cause"
    treatment: Treatment | None = None  #: what a rebuild does about it, where a repair is not it
    covers: Covers | None = None

    @property
    def link(self) -> str:
        """Where the documentation describes it."""
        return f"{DOCUMENT}#{self.name}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that an output matches, and the line that says so."""

    rule: FailureRule
    evidence: str

    @property
    def cause(self) -> str:
        """What went wrong, as a sentence without its full stop."""
        return self.rule.cause

    @property
    def cure(self) -> str:
        """What to do now, as a sentence without its full stop."""
        return self.rule.cure
