"""Displays a run as a redrawn table: a row per host with a mark for each layer, the time, and the activity.

The name of a host is never shortened. In a narrow terminal, other parts are omitted or move to lines below the name.
When the run ends, the table is removed, and the full results are printed.
"""

from __future__ import annotations

import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import TracebackType
from typing import Self

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from hostwright.apply.events import Event
from hostwright.cli.live.plain import event_line
from hostwright.cli.live.rows import BAD, RUNNING, HostRow, counts, elapsed, in_turn
from hostwright.common.text import count, one_line, short
from hostwright.plan.roles.layers import one_order, short_names

REFRESH_PER_SECOND = 4
#: state of a role → mark and style in the table. Yellow and white are unreadable on a light background.
MARKS = {"": ("·", "dim"), "ok": ("✓", "green"), "failed": ("✗", "red"), "as desired": ("=", "dim")}
AT_WORK = ("●", "bold")
STYLES = {"done": "green", "running": "bold", **dict.fromkeys(BAD, "bold red")}
GAP = 2
INDENT = 4
#: minimum width in columns of a host's current activity. If less is free, the activity gets a separate line.
LEAST_NOW = 40
#: minimum width in columns of a host's current activity, if two lines per host do not fit into the terminal
LEAST_OF_MANY = 24
MOST_LEGEND = 2  #: maximum number of lines for the explanation of the marks. A longer explanation is omitted.


class LiveTable:
    """A redrawn table of a run's hosts and layers. Any thread may call the object with an event.

    Usage: ``with LiveTable(…) as view: view(event)``.
    """

    def __init__(
        self,
        console: Console,
        hosts: Mapping[str, Sequence[str]],
        headings: Mapping[str, str] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        """``hosts`` maps each host to its roles. ``headings`` maps roles to short names for columns."""
        self._roles = one_order(hosts.values())
        self._headings = short_names(self._roles, headings or {})
        self._rows = {host: HostRow(host, tuple(roles)) for host, roles in hosts.items()}
        self._clock = clock
        self._begun_s = clock()
        self._console = console
        self._lock = threading.Lock()
        self._live = Live(
            get_renderable=lambda: self, console=console, refresh_per_second=REFRESH_PER_SECOND, transient=True
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._live.__exit__(kind, error, tb)

    def __call__(self, event: Event) -> None:
        """Update the table. An event without a host is printed above the table."""
        if event.host:
            with self._lock:
                self._rows.setdefault(event.host, HostRow(event.host)).take(event, self._clock())
        elif line := event_line(event):
            self._console.print(Text(one_line(line), style="bold"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            yield from self.lines(options.max_width, max(1, options.size.height - 1))

    def lines(self, width: int, height: int) -> list[Text]:
        """Return the lines of the table: at most ``height`` lines of ``width`` columns."""
        now_s = self._clock()
        rows = list(self._rows.values())
        # a run of a command reports no roles, and columns for them would be empty
        layers = self._roles if any(row.state for row in rows) else ()
        least = LEAST_NOW if 2 * len(rows) + 2 <= height else LEAST_OF_MANY
        shape = _Shape.fitting(rows, {role: self._headings[role] for role in layers}, now_s, width, least)
        heading = [*self._counts(rows, now_s, width), *shape.heading()]
        drawn = [*heading, *_hosts(in_turn(rows), lambda row: shape.host(row, now_s), height - len(heading))]
        for line in drawn:
            line.rstrip()
            line.no_wrap = True
            line.truncate(width, overflow="ellipsis")
        return drawn[:height]

    def _counts(self, rows: Sequence[HostRow], now_s: float, width: int) -> list[Text]:
        if len(rows) < 2:
            return []
        parts = [Text(words, STYLES.get(word, "")) for words, word in counts(rows)]
        parts.append(Text(elapsed(now_s - self._begun_s)))
        lines = [Text(f"{count(len(rows), 'host')}: ")]
        for number, part in enumerate(parts):
            between = " · " if number else ""
            if lines[-1].cell_len + len(between) + part.cell_len > width:
                lines.append(Text("  "))
                between = ""
            lines[-1].append(between).append_text(part)
        return lines


@dataclass(frozen=True)
class _Shape:
    """Widths of the table's parts, in columns. If ``names`` is 0, each name is on its own line."""

    width: int
    names: int
    layers: Mapping[str, str]  #: role → heading of the role's column
    clock: int
    least: int  #: minimum width in columns of the activity in the line with the host's name
    headed: bool = False  #: whether each column of marks has a heading above it

    @classmethod
    def fitting(cls, rows: Sequence[HostRow], layers: Mapping[str, str], now_s: float, width: int, least: int) -> Self:
        names = max([len("host") if layers else 1, *(cell_len(row.name) for row in rows)])
        clock = max([len("time") if layers else 0, *(len(_clock(row, now_s)) for row in rows)])
        close = cls(width, names, layers, clock, least)
        headed = replace(close, headed=True)
        if headed.room >= least or (least == LEAST_NOW and headed.room >= -GAP):
            return headed
        if close.room >= -GAP:
            return close if close.room >= least or headed.room < -GAP else headed
        apart = replace(close, names=0)
        return apart if apart.room >= -GAP else replace(apart, layers={})

    @property
    def room(self) -> int:
        return self.width - (self.names + GAP if self.names else INDENT) - self.marks_width - self.clock - GAP

    @property
    def marks_width(self) -> int:
        each = [len(heading) for heading in self.layers.values()] if self.headed else [1] * len(self.layers)
        return sum(each) + (len(each) - 1 if self.headed else 0) + GAP if each else 0

    def heading(self) -> list[Text]:
        if not self.layers:
            return []
        if self.headed:
            words = " ".join(self.layers.values())
            return [Text(f"{'host':<{self.names + GAP}}{words}{' ' * GAP}{'time':>{self.clock}}", "dim")]
        lines = [Text("layers:", "dim")]
        for word in self.layers.values():
            if lines[-1].cell_len + 1 + len(word) > self.width:
                lines.append(Text(" ", "dim"))
            lines[-1].append(f" {word}")
        return lines if len(lines) <= MOST_LEGEND else []

    def host(self, row: HostRow, now_s: float) -> list[Text]:
        style = "bold red" if row.standing in BAD else "bold"
        if self.names:
            lines, last = [], Text().append(row.name, style)
            last.append(" " * (self.names + GAP - cell_len(row.name)))
        else:
            lines, last = [Text(part, style) for part in chop_cells(row.name, self.width)], Text(" " * INDENT)
        last.append_text(self._marks(row)).append(f"{_clock(row, now_s):>{self.clock}}")
        lines.append(last)
        now = Text(_tame(row.now), style="" if row.standing == RUNNING else STYLES.get(row.standing, "dim"))
        if self.room >= self.least or (row.standing != RUNNING and now.cell_len <= self.room):
            last.append(" " * GAP).append_text(now)
        elif now:
            lines.append(Text(" " * INDENT).append_text(now))
        return lines

    def _marks(self, row: HostRow) -> Text:
        marks = []
        for role, heading in self.layers.items():
            mark, style = MARKS.get(row.state.get(role, ""), AT_WORK)
            if role not in row.roles and role not in row.state:
                mark = " "
            marks.append(Text(f"{mark:<{len(heading)}}" if self.headed else mark, style))
        return Text(" " if self.headed else "").join(marks).append(" " * GAP) if marks else Text()


def _clock(row: HostRow, now_s: float) -> str:
    seconds = row.seconds(now_s)
    return "" if seconds is None else elapsed(seconds)


def _hosts(rows: Sequence[HostRow], draw: Callable[[HostRow], list[Text]], room: int) -> Iterator[Text]:
    drawn = [draw(row) for row in rows] if len(rows) <= room else []
    if drawn and sum(map(len, drawn)) <= room:
        for lines in drawn:
            yield from lines
        return
    room -= 1
    groups = [[row for row in rows if _group(row) == group] for group in range(3)]
    kept = min(sum(len(draw(row)) for row in islice(groups[1], max(0, room))), room // 3)
    hidden, cut = list(rows), False
    for group, leave in zip(groups, (kept, 0, 0), strict=True):
        shown = 0
        for row in group:
            lines = draw(row)
            if len(lines) > room - leave:
                break
            yield from lines
            room, shown = room - len(lines), shown + 1
            hidden.remove(row)
        cut = cut or shown < len(group)
        if cut and not leave:
            break
    bad = ", ".join(words for words, word in counts(hidden) if word in BAD)
    yield Text(f"… {len(hidden)} more" + (f", among them {bad}" if bad else ""), "bold red" if bad else "dim")


def _group(row: HostRow) -> int:
    return 0 if row.standing in BAD else 1 if row.standing == RUNNING else 2


def _tame(text: str) -> str:
    """Return the host's ``text`` as one short line, without characters of uncertain width, which could make the line
    wrap.
    """
    composed = unicodedata.normalize("NFC", short(text))
    return "".join(
        char
        for char in composed
        if char.isascii() or (cell_len(char) and unicodedata.category(char) not in {"Mn", "Me", "Sk"})
    )
