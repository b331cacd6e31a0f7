"""Charts of the history, as shapes and labels of inline SVG that a template draws. All functions are pure.

All lengths are units of a chart's view box (``WIDTH`` × ``HEIGHT``); on a phone, a unit is about a CSS pixel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from hostwright.audit.reports.html.matrix import STATUSES
from hostwright.audit.reports.html.text import day_of, line, name
from hostwright.audit.reports.table import SHOWN, WORDS
from hostwright.audit.reports.trend import TrendPoint

WIDTH, HEIGHT = 400, 190
LEFT, RIGHT, TOP, BOTTOM = 34, 8, 8, 24  #: widths of a chart's margins in SVG units, for the labels of the axes
BAR = 22  #: maximum width of a bar in units of the SVG
LINES = 5  #: maximum number of lines in a chart, each for one value
CHARTS = 9  #: maximum number of readings with a chart
OTHERS = "other values"

Mark = tuple[float, str]  #: position of a mark on an axis, and the label of the mark


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A bar of a chart, with its tooltip."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    title: str


@dataclass(frozen=True, slots=True)
class ChartLine:
    """The number of hosts with one value over time, as an SVG path with steps.

    ``colour`` is the CSS class, which also sets the dashes of the line.
    """

    colour: str
    path: str
    label: str
    hosts: int


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart. ``legend`` has colour, symbol and label of each entry; ``summary`` describes the chart as text."""

    title: str
    summary: str
    shapes: tuple[ChartBar, ...]
    lines: tuple[ChartLine, ...]
    legend: tuple[tuple[str, str, str], ...]
    days: tuple[Mark, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class PlotArea:
    """The axes of a chart, with days from left to right and numbers of hosts from bottom to top."""

    start: date
    days: int
    top: int  #: number of hosts at the upper edge of the chart
    step: int  #: number of hosts between two marks

    @property
    def slot(self) -> float:
        """The width of one day in the chart."""
        return (WIDTH - LEFT - RIGHT) / self.days

    def x(self, day: date) -> float:
        """Return the horizontal position of the left edge of ``day``."""
        return round(LEFT + (day - self.start).days * self.slot, 2)

    def y(self, hosts: float) -> float:
        """Return the vertical position for the number ``hosts``."""
        return round(HEIGHT - BOTTOM - hosts * (HEIGHT - TOP - BOTTOM) / self.top, 2)

    @classmethod
    def of(cls, days: Sequence[date], most: int) -> PlotArea:
        """Return the axes for ``days`` and for up to ``most`` hosts, with at most five marks at round numbers."""
        step = next(
            digit * 10**power for power in range(12) for digit in (1, 2, 5) if digit * 10**power * 4 >= max(most, 1)
        )
        return cls(days[0], (days[-1] - days[0]).days + 1, -(-max(most, 1) // step) * step, step)

    def day_marks(self) -> tuple[Mark, ...]:
        """Return the marks of the horizontal axis: about four days."""
        every = max(1, -(-self.days // 4))
        marked = [self.start + timedelta(days=offset) for offset in range(0, self.days, every)]
        return tuple((round(self.x(day) + self.slot / 2, 2), short_day(day)) for day in marked)

    def host_marks(self) -> tuple[Mark, ...]:
        """Return the marks of the vertical axis: numbers of hosts at steps of ``step``."""
        return tuple((self.y(hosts), f"{hosts:,}") for hosts in range(0, self.top + 1, self.step))


@dataclass(frozen=True, slots=True)
class HistoryChart:
    """The charts of host statuses, and of readings with several values.

    ``steady`` are texts about readings with one value.
    """

    days: tuple[TrendPoint, ...]
    states: tuple[Chart, ...]
    versions: tuple[Chart, ...]
    steady: tuple[str, ...]
    uncharted: tuple[str, ...]

    @property
    def table(self) -> list[tuple[str, list[int]]]:
        """The number of hosts by status on each day, the last day first."""
        return [(point.day, [point.counts.get(status, 0) for status in STATUSES]) for point in reversed(self.days)]


def short_day(day: date) -> str:
    """Return ``day`` in short form: ``3 Nov``."""
    return f"{day.day} {day:%b}"


def history(trend: Iterable[TrendPoint]) -> HistoryChart:
    """Return the charts of the history ``trend``; none if ``trend`` has only one day."""
    by_day = {day: point for point in trend if (day := day_of(point.day))}
    days = sorted(by_day)
    points = tuple(by_day[day] for day in days)
    if len(days) < 2:
        return HistoryChart(points, (), (), (), ())
    changed, steady = _readings(points)
    return HistoryChart(
        points,
        tuple(_states(days, points)),
        tuple(_versions(days, points, reading) for reading in changed[:CHARTS]),
        tuple(steady),
        tuple(name(reading) for reading in changed[CHARTS:]),
    )


def _states(days: Sequence[date], points: Sequence[TrendPoint]) -> Iterable[Chart]:
    bad = tuple(status for status in STATUSES if status != "desired")
    if any(point.counts.get(status, 0) for point in points for status in bad):
        yield _stack("Hosts not as desired", days, points, bad)
    yield _stack("All hosts", days, points, STATUSES)


def _stack(title: str, days: Sequence[date], points: Sequence[TrendPoint], statuses: Sequence[str]) -> Chart:
    totals = [sum(point.counts.get(status, 0) for status in statuses) for point in points]
    ground = PlotArea.of(days, max(totals))
    shapes: list[ChartBar] = []
    for day, point in zip(days, points, strict=True):
        width = min(BAR, ground.slot * 0.8)
        below, x = 0, round(ground.x(day) + (ground.slot - width) / 2, 2)
        for status in statuses:
            hosts = point.counts.get(status, 0)
            if hosts > 0:
                y = ground.y(below + hosts)
                tooltip = f"{day.isoformat()}: {_hosts(hosts)} {WORDS[status]}"  # type: ignore[index]
                shapes.append(ChartBar(x, y, round(width, 2), round(ground.y(below) - y, 2), f"f-{status}", tooltip))
                below += hosts
    present = [
        status for status in STATUSES if status in statuses and any(point.counts.get(status) for point in points)
    ]
    legend = tuple((f"f-{status}", SHOWN[status][0], WORDS[status]) for status in present)
    summary = f"{title} by day, {days[0]} to {days[-1]}: first {totals[0]}, last {totals[-1]}, at most {max(totals)}."
    return Chart(title, summary, tuple(shapes), (), legend, ground.day_marks(), ground.host_marks())


def _hosts(number: int) -> str:
    return f"{number:,} host" if number == 1 else f"{number:,} hosts"


def _readings(points: Sequence[TrendPoint]) -> tuple[list[str], list[str]]:
    values: dict[str, dict[str, None]] = {}
    for point in points:
        for reading, hosts_by_value in point.versions.items():
            values.setdefault(reading, {}).update(dict.fromkeys(hosts_by_value))
    changed = [reading for reading, ever in values.items() if len(ever) > 1]
    steady = [f"{name(reading)} {line(next(iter(ever)), 40)}" for reading, ever in values.items() if len(ever) == 1]
    return sorted(changed, key=lambda reading: (-_movement(points, reading), reading)), sorted(steady)


def _movement(points: Sequence[TrendPoint], reading: str) -> int:
    moved = 0
    by_day = [point.versions[reading] for point in points if reading in point.versions]
    for before, after in pairwise(by_day):
        moved += sum(abs(after.get(value, 0) - before.get(value, 0)) for value in {*before, *after})
    return moved


def _versions(days: Sequence[date], points: Sequence[TrendPoint], reading: str) -> Chart:
    series = _series(points, reading)
    ground = PlotArea.of(days, max(max(hosts) for hosts in series.values()))
    lines = tuple(
        ChartLine(f"k{number}", _steps(ground, days, hosts), line(value, 40) or "nothing", hosts[-1])
        for number, (value, hosts) in enumerate(series.items())
    )
    shapes = tuple(_day(ground, day, series, number) for number, day in enumerate(days))
    legend = tuple((drawn.colour, "", f"{drawn.label}: {_hosts(drawn.hosts)}") for drawn in lines)
    summary = f"Hosts by {name(reading)}, {days[0]} to {days[-1]}. Now " + ", ".join(label for _, _, label in legend)
    return Chart(name(reading), summary, shapes, lines, legend, ground.day_marks(), ground.host_marks())


def _series(points: Sequence[TrendPoint], reading: str) -> Mapping[str, list[int]]:
    by_day = [point.versions.get(reading, {}) for point in points]
    ever: Counter[str] = Counter()
    for of_day in by_day:
        ever.update(of_day)
    ranked = sorted(ever, key=lambda value: (-by_day[-1].get(value, 0), -ever[value], value))
    series = {value: [of_day.get(value, 0) for of_day in by_day] for value in ranked[:LINES]}
    if rest := ranked[LINES:]:
        series[OTHERS] = [sum(of_day.get(value, 0) for value in rest) for of_day in by_day]
    return series


def _steps(ground: PlotArea, days: Sequence[date], hosts: Sequence[int]) -> str:
    path = [f"M{ground.x(days[0])} {ground.y(hosts[0])}"]
    path += [f"H{ground.x(day)}V{ground.y(number)}" for day, number in zip(days[1:], hosts[1:], strict=True)]
    return "".join([*path, f"H{WIDTH - RIGHT}"])


def _day(ground: PlotArea, day: date, series: Mapping[str, Sequence[int]], number: int) -> ChartBar:
    counts = [
        f"{line(value, 40) or 'nothing'}: {_hosts(hosts[number])}" for value, hosts in series.items() if hosts[number]
    ]
    title = "\n".join([day.isoformat(), *counts])
    return ChartBar(ground.x(day), TOP, round(ground.slot, 2), HEIGHT - TOP - BOTTOM, "hit", title)
