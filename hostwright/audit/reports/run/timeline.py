"""The timeline of a run: the times at which each layer of each host was changed. All functions are pure.

Times are in seconds after the start of the run. Positions and widths are percentages of the run's duration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from hostwright.apply.journal.runs import HostRun
from hostwright.audit.reports.html.text import line, name
from hostwright.audit.reports.run.chain import ChainLink, chain_of
from hostwright.audit.reports.run.spans import Kind, RunSpan, needs_of, number, spans_of
from hostwright.common.text import shown_seconds

LETTER = 0.62  #: width of one letter of a label in percent of the page width (1280 pixels)
NARROWEST = 0.15  #: minimum width of a drawn activity in percent of the page width
MOST_TICKS = 8
SHOWN_WAIT_S = 0.2  #: minimum duration in seconds of a drawn wait for a lock
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)


@dataclass(frozen=True, slots=True)
class Piece:
    """One activity on a host, as a bar of the timeline.

    ``title`` is the full text; ``label`` is the text in the bar, and empty if no text fits.
    """

    kind: Kind
    start: float
    width: float
    lane: int
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A mark on an activity: a wait for a lock, or a part of the critical path."""

    start: float
    width: float
    lane: int
    title: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """The rows of a host in the timeline: its activities, its waits for locks, and its critical path."""

    key: str  #: name of the host in the record
    host: str  #: name of the host as printed
    result: str
    pieces: tuple[Piece, ...]
    lanes: int
    waits: tuple[Bar, ...] = ()
    critical: tuple[Bar, ...] = ()
    path: tuple[ChainLink, ...] = ()
    end_s: float = 0.0


def timeline(hosts: Iterable[HostRun], whole_s: float) -> list[Lanes]:
    """Return the timelines of the hosts on which something took time, sorted by start time."""
    spans = [(host, spans_of(host, whole_s)) for host in hosts]
    begun = sorted((row for row in spans if row[1]), key=lambda row: row[1][0].began_s)
    return [_row(host, some, whole_s) for host, some in begun]


def whole_time(hosts: Iterable[HostRun], duration_s: float | None) -> float:
    """Return the duration of a run in seconds, at least 0.1.

    For a run without a recorded end, the time of the last record is used.
    """
    ends = (role.began_s + role.duration_s for host in hosts for role in host.roles)
    records_s = (number(record, "t") for host in hosts for record in host.said)
    return max(0.1, duration_s or 0.0, *ends, *records_s, 0.1)


def ticks(whole_s: float) -> list[tuple[float, str]]:
    """Return the marks of the time axis of a run of ``whole_s`` seconds, as pairs of position and label."""
    step = next((step for step in _STEPS_S if whole_s / step <= MOST_TICKS), _STEPS_S[-1])
    return [(100 * at / whole_s, _mark(at)) for at in _until(step, whole_s)]


def _mark(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else shown_seconds(seconds).replace(" 00 s", "").replace(" 00 min", "")


def _until(step: float, whole_s: float) -> Iterator[float]:
    for place in count(1):
        if place * step > whole_s * 0.985 or place > 10 * MOST_TICKS:
            return
        yield place * step


def _row(host_run: HostRun, spans: Sequence[RunSpan], whole_s: float) -> Lanes:
    lanes = _lanes(spans)
    pieces = tuple(_piece(span, lane, whole_s) for span, lane in zip(spans, lanes, strict=True))
    of = {id(span): lane for span, lane in zip(spans, lanes, strict=True)}
    waits = (
        Bar(*_place(step.began_s, step.waited_s, whole_s), of[id(span)], _waited(step.waited_s))
        for span in spans
        for step in span.steps
        if step.waited_s >= SHOWN_WAIT_S
    )
    path = chain_of(spans, needs_of(host_run))
    critical = (Bar(*_place(link.began_s, link.lasted_s, whole_s), of[id(link.span)], "critical path") for link in path)
    end_s = max(span.end_s for span in spans)
    return Lanes(
        host_run.host,
        name(host_run.host),
        name(host_run.result),
        pieces,
        max(lanes) + 1,
        tuple(waits),
        tuple(critical),
        path,
        end_s,
    )


def _waited(seconds: float) -> str:
    return f"waited {shown_seconds(seconds)} for a lock"


def _lanes(spans: Sequence[RunSpan]) -> list[int]:
    ends: list[float] = []
    lanes = []
    for span in spans:
        lane = next((place for place, end in enumerate(ends) if end <= span.began_s + 0.001), len(ends))
        ends[lane : lane + 1] = [span.end_s]
        lanes.append(lane)
    return lanes


def _place(began_s: float, lasted_s: float, whole_s: float) -> tuple[float, float]:
    start = max(0.0, min(100.0 - NARROWEST, 100 * began_s / whole_s))
    return round(start, 3), round(max(NARROWEST, min(100.0 - start, 100 * lasted_s / whole_s)), 3)


def _piece(span: RunSpan, lane: int, whole_s: float) -> Piece:
    start, width = _place(span.began_s, span.lasted_s, whole_s)
    what = name(span.what)
    label = what if len(what) * LETTER < width else ""
    text = f": {line(span.detail)}" if span.detail else ""
    title = f"{what}, {shown_seconds(span.lasted_s)}, from {shown_seconds(span.began_s)}{text}"
    return Piece(span.kind, start, width, lane, label, title)
