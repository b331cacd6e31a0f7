"""Tables of the benchmark's page ``docs/performance.md``, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.cases.case import Case, Table
from benchmarks.figures.goals import Judged, judge, number
from benchmarks.figures.statistics import Figures, NotMeasured, Series


@dataclass(frozen=True, slots=True)
class Column:
    """Table column for one value of the samples. ``scale`` converts the value to the unit in ``heading``."""

    heading: str
    what: str
    scale: float = 1.0
    spread: bool = False


WALL = Column("wall, s", "wall_s", spread=True)
CPU = Column("controller CPU, s", "cpu_s", spread=True)
MEMORY = (Column("memory, MB", "rss_bytes", 1e-6), Column("of processes", "processes"))
TRAFFIC = (Column("sent, kB", "sent_bytes", 1e-3), Column("received, kB", "received_bytes", 1e-3))


def columns(table: Table) -> tuple[Column, ...]:
    """Return the value columns of a case's table of samples."""
    more = tuple(Column(heading, what, spread=True) for what, heading in table.extra.items())
    return (WALL, CPU, *(MEMORY if table.memory else ()), *(TRAFFIC if table.traffic else ()), *more)


def samples(table: Table, figures: Figures) -> str:
    """Return a case's table with a row for each series.

    Cells have the median (minimum–maximum) of all rounds.
    """
    chosen = columns(table)
    every = figures.series()
    varied = any(series.variant for series in every)
    heads = [table.size, *(["condition"] if varied else []), "contender", *(one.heading for one in chosen), "rounds"]
    rows = [
        [
            str(series.size) if series.size else "–",
            *([series.variant or "–"] if varied else []),
            series.contender,
            *(cell(figures, series, one) for one in chosen),
            str(len(figures.values(series.contender, series.size, "wall_s", series.variant))),
        ]
        for series in sorted(every, key=lambda one: (one.variant != "", one.size))
    ]
    return markdown(heads, rows)


def cell(figures: Figures, series: Series, column: Column) -> str:
    """Return the median (minimum–maximum) of a series' value, as text of a cell."""
    try:
        found = figures.spread(series.contender, series.size, column.what, series.variant)
    except NotMeasured:
        return "–"
    median = number(found.median * column.scale)
    if not column.spread or found.count == 1:
        return median
    return f"{median} ({number(found.least * column.scale)}–{number(found.most * column.scale)})"


def verdicts(case: Case, figures: Figures) -> tuple[Judged, ...]:
    """Return the case's goals with values from ``figures`` and verdicts."""
    return tuple(judge(goal, figures) for goal in case.goals())


def goals(judged: Sequence[Judged]) -> str:
    """Return the table of goals."""
    return markdown(GOAL_COLUMNS, (goal_cells(one) for one in judged))


GOAL_COLUMNS = ("figure", "to reach", "measured", "verdict", "as a time")


def goal_cells(one: Judged) -> list[str]:
    """Return the cells of the table row for the goal ``one``."""
    return [one.goal.title, one.goal.wanted, one.shown, f"**{one.verdict}**", one.shown_time]


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. Vertical bars in cells are escaped."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(one.replace("|", "\\|") for one in cells) + " |"

    return "\n".join([line(heads), line(["---"] * len(heads)), *map(line, rows)])


def lines(pairs: Iterable[tuple[str, str]], shown: Callable[[str], str] = str) -> Iterator[str]:
    """Yield an item of a Markdown list for each name and value."""
    for name, value in pairs:
        yield f"* {name}: {shown(value)}"
