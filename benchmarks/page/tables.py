"""Tables of a case, as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.cases.case import Case, Table
from benchmarks.figures.goals import Judged, judge, number
from benchmarks.figures.statistics import Figures, NotMeasured, Series


@dataclass(frozen=True, slots=True)
class Column:
    """A column with a value of samples and its unit."""

    heading: str
    what: str
    scale: float = 1.0
    spread: bool = False


WALL = Column("wall, s", "wall_s", spread=True)
CPU = Column("controller CPU, s", "cpu_s", spread=True)
MEMORY = (Column("memory, MB", "rss_bytes", 1e-6), Column("of processes", "processes"))
TRAFFIC = (Column("sent, kB", "sent_bytes", 1e-3), Column("received, kB", "received_bytes", 1e-3))


def columns(table: Table) -> tuple[Column, ...]:
    """Columns of the table with samples of a case."""
    more = tuple(Column(heading, what, spread=True) for what, heading in table.extra.items())
    return (WALL, CPU, *(MEMORY if table.memory else ()), *(TRAFFIC if table.traffic else ()), *more)


def samples(table: Table, figures: Figures) -> str:
    """Table with a row for each series: median (minimum–maximum) of its rounds."""
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
    """Cell for a series: median (minimum–maximum) of the column's value."""
    try:
        found = figures.spread(series.contender, series.size, column.what, series.variant)
    except NotMeasured:
        return "–"
    median = number(found.median * column.scale)
    if not column.spread or found.count == 1:
        return median
    return f"{median} ({number(found.least * column.scale)}–{number(found.most * column.scale)})"


def verdicts(case: Case, figures: Figures) -> tuple[Judged, ...]:
    """Judge the case's goals."""
    return tuple(judge(goal, figures) for goal in case.goals())


def goals(judged: Sequence[Judged]) -> str:
    """Table with a row for each goal."""
    return markdown(GOAL_COLUMNS, (goal_cells(one) for one in judged))


GOAL_COLUMNS = ("figure", "to reach", "measured", "verdict", "as a time")


def goal_cells(one: Judged) -> list[str]:
    """Row of a goal."""
    return [one.goal.title, one.goal.wanted, one.shown, f"**{one.verdict}**", one.shown_time]


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with escaped vertical bars."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(one.replace("|", "\\|") for one in cells) + " |"

    return "\n".join([line(heads), line(["---"] * len(heads)), *map(line, rows)])


def lines(pairs: Iterable[tuple[str, str]], shown: Callable[[str], str] = str) -> Iterator[str]:
    """Items of a Markdown list."""
    for name, value in pairs:
        yield f"* {name}: {shown(value)}"
