"""Console for all printed text. In a terminal, it indents continued lines; elsewhere it never wraps lines.

It also adds the options of this call to recommended commands. ``printable`` removes control characters and direction
marks first, because a hostile host could send them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextvars import copy_context
from typing import Any, Self

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.containers import Lines
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from hostwright.cli.shell import advice, streams

UNBOUNDED = 1_000_000  #: width in columns of output that is not a terminal
_DEEPER = 4  #: number of columns by which each further line of a wrapped text is indented
_GAP = "  "
#: character that replaces each unbreakable character while a text is wrapped
_LETTER = "x"
_MOST_PER_COLUMN = 4  #: maximum number of characters per terminal column. Combining marks take no column.
#: brown, because yellow is unreadable on a light background. Brown has a contrast of 4.7 with white, 4.5 with black.
THEME = Theme({"yellow": "color(130)", "bold yellow": "bold color(130)"})
OUTPUT = "│"  #: prefix of each output line of a remote program


class Hanging(Text):
    """Text that gets a hanging indent if it is wider than the terminal.

    Without the indent, a long text from one host could look like the output of another host.
    """

    @classmethod
    def of(cls, text: Text) -> Self:
        """Return a copy of ``text`` that gets a hanging indent."""
        hanging = cls(text.plain, text.style, justify=text.justify, overflow=text.overflow, no_wrap=text.no_wrap)
        hanging.end, hanging.spans = text.end, text.spans
        return hanging

    def wrap(self, console: Console, width: int, **how: Any) -> Lines:  # noqa: ARG002 - rich's signature
        """Override rich's method: indent the continuation of each line that is wider than ``width``."""
        lines = Lines()
        for line in self.split(allow_blank=True):
            fits = line.cell_len <= width or how.get("no_wrap")
            lines.extend([line] if fits else self.hang(line, width))
        return lines

    def hang(self, line: Text, width: int, whole: Iterable[str] = ()) -> Iterator[Text]:
        """Yield the parts of ``line``, which is wider than ``width``. A text in ``whole`` is divided only if the text
        alone is too wide.
        """
        indent, deeper = _indents(line, width)
        text = line[indent:]
        plain = text.plain
        for each in whole:
            plain = plain.replace(each, _LETTER * len(each))
        for number, part in enumerate(text.divide(_breaks(plain, width - deeper))):
            part.rstrip()
            part.pad_left(deeper if number else min(indent, deeper))
            yield part


def _breaks(plain: str, width: int) -> Iterator[int]:
    start = 0
    while start < len(plain):
        window = chop_cells(plain[start : start + _MOST_PER_COLUMN * width], width)[0]
        end = start + len(window)
        if end < len(plain) and plain[end] != " ":
            end = start + (next((cut for sign in " ,/" if (cut := window.rfind(sign) + 1)), 0) or len(window))
        start = end + len(plain[end:]) - len(plain[end:].lstrip(" "))
        if start < len(plain):
            yield start


def _indents(line: Text, width: int) -> tuple[int, int]:
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    return indent, min(indent + _DEEPER, width // 2)


class Listed(Hanging):
    """A line of several parts, such as counts of hosts by result. The line is broken only after commas and colons."""

    def hang(self, line: Text, width: int, whole: Iterable[str] = ()) -> Iterator[Text]:
        """Break ``line`` only after commas and colons."""
        return super().hang(line, width, [*whole, *re.split(r"[:,] ", line.plain)])


def with_sums(shown: Group) -> Group:
    """Return ``shown`` with its last line as a ``Listed``. This line has the counts of hosts by result."""
    *parts, last = shown.renderables
    return Group(*parts, Listed.of(last) if isinstance(last, Text) else last)


class Quoted(Hanging):
    """A line of a file that the operator may copy: never wrapped, and without options added to its commands."""

    def wrap(self, console: Console, width: int, **how: Any) -> Lines:  # noqa: ARG002 - rich's signature
        """Override rich's method: never wrap."""
        return self.split(allow_blank=True)


class Advice(Hanging):
    """Text with recommended commands. A command that does not fit gets its own line, which only the terminal wraps.

    A shell would run the first half of a copied command that contains an inserted line break.
    """

    commands: tuple[str, ...] = ()

    def hang(self, line: Text, width: int, whole: Iterable[str] = ()) -> Iterator[Text]:
        """Wrap ``line`` and yield the resulting lines. A command is never divided between two lines."""
        _, deeper = _indents(line, width)
        room = width - deeper - len("``,")
        short = [*whole, *(command for command in self.commands if command.isascii() and len(command) <= room)]
        for command in self.commands:
            start = line.plain.find(command)
            if start < 0 or command in short:
                continue
            before, after = line[:start], line[start + len(command) :]
            if before.plain.endswith("`"):
                before.right_crop(1)
            before.rstrip()
            yield from super().hang(before, width, short)
            yield Text.assemble(" " * deeper, line[start : start + len(command)])
            rest = after.plain.removeprefix("`").lstrip(" ")
            if not rest.strip("`'."):
                return
            line = Text.assemble(" " * deeper, after[len(after.plain) - len(rest) :])
        yield from super().hang(line, width, short)


def in_columns(titles: Sequence[str], rows: Sequence[Sequence[Text]], width: int) -> Iterator[Text]:
    """Yield a line of titles and a line for each row, without empty columns.

    If a row is wider than ``width``, all but the first two columns move to an indented line below each row.

    >>> [line.plain for line in in_columns(("host", "power", "next boot"), [[Text("gpu01"), Text("on"), Text()]], 80)]
    ['host   power', 'gpu01  on']
    >>> wide = [[Text("gpu01"), Text("on"), Text("R7525")]]
    >>> [line.plain for line in in_columns(("host", "power", "model"), wide, 14)]
    ['gpu01  on', '  model R7525']
    """
    kept = [number for number, _ in enumerate(titles) if any(row[number].plain for row in rows)]
    sizes = [max(cell_len(titles[number]), *(row[number].cell_len for row in rows)) for number in kept]
    if sum(sizes) + len(_GAP) * (len(sizes) - 1) > width:
        for row in rows:
            yield Hanging.assemble(row[kept[0]], _GAP, *([row[kept[1]]] if len(kept) > 1 else []))
            if parts := [f"{titles[number]} {row[number].plain}" for number in kept[2:] if row[number].plain]:
                yield Hanging(f"{_GAP}{', '.join(parts)}")
        return
    heads = (titles[number].ljust(size) for number, size in zip(kept, sizes, strict=True))
    yield Hanging(_GAP.join(heads).rstrip(), style="dim")
    for row in rows:
        line = Hanging()
        for number, size in zip(kept, sizes, strict=True):
            cell = row[number] if row[number].plain else Text("–")
            line.append_text(cell).append(" " * (size - cell.cell_len) + _GAP)
        line.rstrip()
        yield line


class Ragged:
    """A table whose lines have no trailing blanks, because one long cell would lengthen every line of a log."""

    def __init__(self, table: Table):
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._table, options, pad=False):
            while line and not line[-1].text.strip(" "):
                line.pop()
            if line:
                text, style, _ = line.pop()
                yield from [*line, Segment(text.rstrip(" "), style)]
            yield Segment.line()


class Adviser(Console):
    """A console that adds this call's options to recommended commands (see ``hostwright.cli.shell.advice``).

    In a terminal, a text that is longer than a line gets a hanging indent. Other outputs are not wrapped.
    """

    def __init__(self, *, stderr: bool):
        super().__init__(stderr=stderr, highlight=False, theme=THEME)
        self._call = copy_context()  # the threads that work on hosts print too, and do not inherit this context
        self._bounded = on_terminal(self)
        if not self._bounded:
            self.width = UNBOUNDED

    def print(self, *objects: Any, **how: Any) -> None:
        """Print ``objects`` as rich does, but never crop unwrapped lines, because they may contain commands."""
        shown = self._call.copy().run(lambda: [self._complete(one) for one in objects])
        if len(shown) == 1 and isinstance(shown[0], Hanging) and "end" not in how:
            shown = [Group(*shown)]  # rich would copy a single text to a text without a hanging indent
        super().print(*shown, **{"crop": False, **how})

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002 - rich's signature
        """Never hide the cursor, because it could stay hidden after SIGTERM or Ctrl-Z."""
        return False

    def on_broken_pipe(self) -> None:
        """Leave a closed pipe to ``hostwright.cli.exits``; rich would exit with 1."""
        raise  # noqa: PLE0704 - rich calls this where it handles the error

    def _complete(self, shown: Any) -> Any:
        if isinstance(shown, Group):
            return Group(*map(self._complete, shown.renderables))
        if isinstance(shown, Table) and not self._bounded:
            return Ragged(shown)
        if isinstance(shown, str):
            return advice.completed(shown)
        if isinstance(shown, Text) and not isinstance(shown, Quoted):
            quoted = shown.plain.lstrip().startswith(OUTPUT)
            changes = [] if quoted else [*advice.insertions(shown.plain)]
            if changes:
                text = shown
                for start, end, words in reversed(changes):
                    text = Text.assemble(text[:start], words, text[end:], style=shown.style)
                whole = Advice(style=shown.style)
                whole.append_text(text)
                whole.commands = advice.whole_commands(shown.plain)
                return whole
            return shown if isinstance(shown, Hanging) else Hanging.of(shown)
        return shown


def make_console(*, stderr: bool = False) -> Console:
    """Return a new console for standard output, or for standard error. Outside a terminal, the width of the console is
    unlimited.
    """
    return Adviser(stderr=stderr)


def on_terminal(console: Console) -> bool:
    """Return whether the console's output is a terminal. A log with forced colours is not a terminal."""
    asked = any(os.environ.get(name) for name in streams.COLOURED)
    return console.is_terminal and (not asked or console.file.isatty())


def redraws(console: Console) -> bool:
    """Return whether the console's output is a terminal that can move its cursor; ``TERM=dumb`` cannot."""
    return on_terminal(console) and not console.is_dumb_terminal
