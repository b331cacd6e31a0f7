"""Plots of measured figures. In a plot over hosts, each device is a dot; in a plot over time, each device is a line.
Pure functions.

All lengths are units of a plot's view box (``WIDTH`` × ``HEIGHT``); on a phone, a unit is about a CSS pixel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median

from hostwright.audit.reports.html.charts import HEIGHT, LEFT, RIGHT, TOP, WIDTH
from hostwright.audit.reports.html.text import line, name
from hostwright.common.text import count
from hostwright.prove.fleetproof import FleetProof
from hostwright.prove.judging import shown
from hostwright.prove.model import Measurement
from hostwright.prove.proofstore import PastFigure

PLOTS = 60  #: maximum number of figures with a plot. The proofs of a stack have about 40 figures.
#: maximum number of devices with different colours in a plot; above it, only devices with a finding are coloured
COLOURS = 5
BAD, PEER = "bad", "peer"  #: CSS class of devices with a finding, and CSS class of other devices
MOST_DOTS = 500  #: maximum number of dots in a plot over time; only the latest dots are shown
FLOOR = HEIGHT - 24  #: vertical position of a plot's horizontal axis, above the labels of the axis

Key = tuple[str, str, str]  #: key of a plot: proof, figure, and model of device


@dataclass(frozen=True, slots=True)
class Dot:
    """One value in a plot. ``title`` is its tooltip, ``state`` its CSS class."""

    x: float
    y: float
    state: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """The values of one device over time, as an SVG path."""

    path: str
    colour: str
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The plots of one figure on one model of device.

    ``dots`` are the values of this run, with the median at ``middle``, and ``lines`` the values over time. ``legend``
    has the CSS class and the label of each line, or of all lines of devices without a finding.
    """

    title: str
    among: str
    summary: str
    dots: tuple[Dot, ...]
    middle: float
    marks: tuple[tuple[float, str], ...]  #: position and label of each mark on the value axis
    lines: tuple[Line, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    past: tuple[Dot, ...] = ()
    times: tuple[tuple[float, str], ...] = ()
    heights: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale that maps values from 0 to ``top`` to positions from ``start`` to ``end``.

    The scale includes zero, so that a loss of 3 % does not look like a loss of half.
    """

    top: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the position of a value in the plot."""
        part = min(1.0, max(0.0, value / self.top)) if self.top else 0.0
        return round(self.start + part * (self.end - self.start), 2)

    @property
    def thirds(self) -> tuple[float, ...]:
        """The values of the three marks: zero, the middle and the top of the scale."""
        return (0.0, self.top / 2, self.top)


def plots(fleet: FleetProof, past: Sequence[PastFigure]) -> tuple[Plot, ...]:
    """Return a plot for each figure that is compared with other hosts. ``past`` are earlier figures."""
    now: dict[Key, list[tuple[str, Measurement]]] = defaultdict(list)
    bad = {
        (host.host, found.proof, found.device)
        for host in fleet.hosts
        for result in host.results
        for found in result.findings
        if found.severity != "note"
    }
    for host in fleet.hosts:
        for result in host.results:
            for one in result.measurements:
                if one.compared:
                    now[result.proof, one.name, one.model].append((host.host, one))
    before: dict[Key, list[PastFigure]] = defaultdict(list)
    for figure in past:
        model = Measurement(figure.name, figure.value, figure.unit, figure.device).model
        before[figure.proof, figure.name, model].append(figure)
    return tuple(_plot(key, now[key], before[key], bad) for key in list(now)[:PLOTS])


def _plot(
    key: Key, values: Sequence[tuple[str, Measurement]], past: Sequence[PastFigure], bad: set[tuple[str, str, str]]
) -> Plot:
    proof, figure, model = key
    unit, numbers = values[0][1].unit, [one.number or 0.0 for _, one in values]
    middle = median(numbers)
    across = Scale(max(1.05 * max(map(abs, numbers)), 1e-12), LEFT, WIDTH - RIGHT)
    dots = [
        Dot(
            across.at(one.number or 0.0),
            round(TOP + 12 + (position % 9) * 9, 2),
            "failing" if (host, proof, one.device) in bad else "desired",
            f"{name(host)}, {name(one.device)}: {shown(one.number or 0.0, unit)}",
        )
        for position, (host, one) in enumerate(values)
    ]
    dots.sort(key=lambda dot: dot.state == "failing")  # The last dots in the list are drawn on top of the others.
    summary = f"{count(len(values), 'device')}: median {shown(middle, unit)}, {shown(min(numbers), unit)} to "
    plot = Plot(
        f"{name(proof)}: {name(figure)}",
        name(model),
        summary + shown(max(numbers), unit),
        tuple(dots),
        across.at(middle),
        tuple((across.at(value), shown(value, unit)) for value in across.thirds),
    )
    return plot if len({one.at for one in past}) < 2 else _over_time(plot, past, unit, bad)


def _over_time(plot: Plot, past: Sequence[PastFigure], unit: str, bad: set[tuple[str, str, str]]) -> Plot:
    first, last = min(one.at for one in past), max(one.at for one in past)
    across = Scale(float(last - first), LEFT, WIDTH - RIGHT)
    up = Scale(max(1.05 * max(abs(one.value) for one in past), 1e-12), FLOOR, TOP)
    devices: Mapping[tuple[str, str], list[PastFigure]] = _by_device(past)
    colours = {
        (host, device): BAD
        if (host, past[0].proof, device) in bad
        else f"k{number}"
        if len(devices) <= COLOURS
        else PEER
        for number, (host, device) in enumerate(devices)
    }
    lines = [
        Line(
            _path((across.at(one.at - first), up.at(one.value)) for one in figures),
            colours[of],
            line(f"{of[0]} {of[1]}"),
        )
        for of, figures in devices.items()
    ]
    lines.sort(key=lambda one: (one.colour == BAD, one.colour != PEER))
    dots = tuple(
        Dot(
            across.at(one.at - first),
            up.at(one.value),
            "failing" if colours[one.host, one.device] == BAD else "intent",
            f"{name(one.host)}, {name(one.device)}, {_day(one.at)}: {shown(one.value, unit)}",
        )
        for one in past
        if colours[one.host, one.device] != PEER
    )
    peers = sum(one.colour == PEER for one in lines)
    others = ((PEER, f"{count(peers, 'device')} without a finding"),) if peers else ()
    return replace(
        plot,
        lines=tuple(lines),
        legend=(*((one.colour, one.label) for one in lines if one.colour != PEER), *others),
        past=dots[-MOST_DOTS:],
        times=tuple((across.at(at - first), _day(at)) for at in (first, last)),
        heights=tuple((up.at(value), shown(value, unit)) for value in up.thirds),
    )


def _by_device(past: Iterable[PastFigure]) -> dict[tuple[str, str], list[PastFigure]]:
    devices: dict[tuple[str, str], list[PastFigure]] = defaultdict(list)
    for one in past:
        devices[one.host, one.device].append(one)
    return devices


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(_moves(points))


def _moves(points: Iterable[tuple[float, float]]) -> Iterator[str]:
    for number, (x, y) in enumerate(points):
        yield f"{'L' if number else 'M'}{x:g} {y:g}"


def _day(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
