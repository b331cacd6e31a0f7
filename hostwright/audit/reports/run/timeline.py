"""When a run worked on which layer of which host: lanes of pieces, computed here and drawn by a template. Pure.

Times are seconds after the start of the run; places and widths are percentages of its whole time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from hostwright.apply.journal.runs import HostRun, RoleRun
from hostwright.audit.reports.html.text import line, name
from hostwright.common.text import shown_seconds

Kind = Literal["ok", "failed", "open", "reboot", "silent", "phase"]
LETTER = 0.62  #: percent of a page's width that a letter of a label takes, on a page of 1280 pixels
NARROWEST = 0.15  #: percent: what took no time is still seen
MOST_TICKS = 8
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)
_OTHERS: Mapping[str, Kind] = {"rebooted": "reboot", "silent": "silent", "phase": "phase"}


@dataclass(frozen=True, slots=True)
class Piece:
    """What was done on a host for some time: ``title`` says it whole, ``label`` is what fits into it."""

    kind: Kind
    start: float
    width: float
    lane: int
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """A host's row of the timeline."""

    host: str
    result: str
    pieces: tuple[Piece, ...]
    lanes: int


@dataclass(frozen=True, slots=True)
class _Span:
    kind: Kind
    what: str
    began_s: float
    lasted_s: float
    told: str = ""


def timeline(hosts: Iterable[HostRun], whole_s: float) -> list[Lanes]:
    """The rows of hosts on which something took time, in the order in which they were begun."""
    spans = [(host, sorted(_spans(host, whole_s), key=lambda span: span.began_s)) for host in hosts]
    begun = sorted((row for row in spans if row[1]), key=lambda row: row[1][0].began_s)
    return [_row(host, some, whole_s) for host, some in begun]


def whole_time(hosts: Iterable[HostRun], duration_s: float | None) -> float:
    """How long the run took: until its end, or until the last that is known of it; never 0."""
    ends = (role.began_s + role.duration_s for host in hosts for role in host.roles)
    said = (number(record, "t") for host in hosts for record in host.said)
    return max(0.1, duration_s or 0.0, *ends, *said, 0.1)


def ticks(whole_s: float) -> list[tuple[float, str]]:
    """The marks of the time axis: where each stands, and what it says."""
    step = next((step for step in _STEPS_S if whole_s / step <= MOST_TICKS), _STEPS_S[-1])
    return [(100 * at / whole_s, _mark(at)) for at in _until(step, whole_s)]


def _mark(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else shown_seconds(seconds).replace(" 00 s", "").replace(" 00 min", "")


def _until(step: float, whole_s: float) -> Iterator[float]:
    for place in count(1):
        if place * step > whole_s * 0.985 or place > 10 * MOST_TICKS:
            return
        yield place * step


def _spans(host: HostRun, whole_s: float) -> Iterator[_Span]:
    for role in host.roles:
        yield _of_role(role, whole_s)
    for record in host.said:
        kind = _OTHERS.get(str(record["kind"]))
        seconds, at = number(record, "seconds"), number(record, "t")
        if kind and seconds > 0:
            what = {"reboot": "reboot", "silent": "silent"}.get(kind, str(record.get("phase", "")))
            told = str(record.get("reason", "") or record.get("what", ""))
            yield _Span(kind, what, max(0.0, at - seconds), seconds, told)


def _of_role(role: RoleRun, whole_s: float) -> _Span:
    done = f"{len(role.steps)} of {role.planned} steps"
    began_s = max(0.0, role.began_s)  # a damaged record may say otherwise
    if role.status is None:
        return _Span("open", role.role, began_s, max(0.0, whole_s - began_s), f"{done}, no end recorded")
    if role.status:
        return _Span("failed", role.role, began_s, role.duration_s, f"{done}, failed with status {role.status}")
    return _Span("ok", role.role, began_s, role.duration_s, done)


def _row(host: HostRun, spans: Sequence[_Span], whole_s: float) -> Lanes:
    ends: list[float] = []  # of each lane
    pieces = []
    for span in spans:
        lane = next((place for place, end in enumerate(ends) if end <= span.began_s + 0.001), len(ends))
        ends[lane : lane + 1] = [span.began_s + span.lasted_s]
        pieces.append(_piece(span, lane, whole_s))
    return Lanes(name(host.host), name(host.result), tuple(pieces), len(ends))


def _piece(span: _Span, lane: int, whole_s: float) -> Piece:
    start = min(100.0 - NARROWEST, 100 * span.began_s / whole_s)
    width = max(NARROWEST, min(100.0 - start, 100 * span.lasted_s / whole_s))
    what = name(span.what)
    label = what if len(what) * LETTER < width else ""
    told = f": {line(span.told)}" if span.told else ""
    title = f"{what}, {shown_seconds(span.lasted_s)}, from {shown_seconds(span.began_s)}{told}"
    return Piece(span.kind, round(start, 3), round(width, 3), lane, label, title)


def number(record: Mapping[str, Any], field: str) -> float:
    """A record's number; 0 where it has none."""
    value = record.get(field)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
