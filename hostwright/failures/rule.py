"""What one known failure looks like, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FailureRule:
    """One known failure: ``pattern`` is a regular expression that is searched for in the output."""

    name: str
    pattern: str
    cause: str  #: what went wrong, a sentence without its full stop
    cure: str  #: what to do now, likewise
    source: str  #: where the message and its cure come from: a file of the tool's source, or a public report
    transient: bool = False  #: it passes by itself: a step that may be repeated is (``hostwright.transient``)
