"""What one known failure looks like, as data: in the output of a tool, on a host, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostwright.plan.model import Probe

if TYPE_CHECKING:
    from hostwright.audit.look import Look

DOCUMENT = "docs/failures.md"  #: where every rule has a section of its name; generated from the rules


@dataclass(frozen=True, slots=True)
class Sign:
    """How a failure is recognised on a host.

    ``seen`` is a pure function: it yields the evidence, the host's own words where there are any, and nothing where
    the failure is not there. It raises ``Unread`` when it cannot tell: "the check could not run" is never "the host
    is bad". Its docstring is the sentence with which the documentation says how the failure is recognised.
    ``probes`` are questions of its own, asked beside those of the roles and of ``Look``. ``grave`` failures stop work,
    or will at the next occasion; others want attention. ``provision`` tells whether ``invoke provision`` mends it.
    """

    layer: str
    seen: Callable[[Look], Iterable[str]]
    probes: tuple[Probe, ...] = ()
    grave: bool = True
    provision: bool = False


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

    @property
    def link(self) -> str:
        """Where the documentation describes it."""
        return f"{DOCUMENT}#{self.name}"
