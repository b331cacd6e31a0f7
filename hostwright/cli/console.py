"""The console: what is too long for a terminal hangs, what is no terminal gets whole lines, commands are made complete.

Everything that came from a host passes ``printable`` first: control characters and direction marks of a hostile host
never reach the terminal.
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

UNBOUNDED = 1_000_000  #: columns of what is no terminal: nothing that we print is as long
_DEEPER = 4  #: columns
_GAP = "  "  #: between columns
_LETTER = "x"  #: stands for each character of what is not broken
_MOST_PER_COLUMN = 4  #: characters, where marks are drawn over others
#: Yellow is unreadable on a light background. The contrast of this brown is 4.7 with white and 4.5 with black.
#: Terminals of 16 colours still show yellow.
THEME = Theme({"yellow": "color(130)", "bold yellow": "bold color(130)"})
OUTPUT = "│"  #: begins a line of a program's output


class Hanging(Text):
    """Text that continues deeper than it begins where it is longer than the terminal is wide.

    Nothing that a host says, however long, begins a line: there it could pass for another host's.
    """

    @classmethod
    def of(cls, text: Text) -> Self:
        """The same text, hanging."""
        hanging = cls(text.plain, text.style, justify=text.justify, overflow=text.overflow, no_wrap=text.no_wrap)
        hanging.end, hanging.spans = text.end, text.spans
        return hanging

    def wrap(self, console: Console, width: int, **how: Any) -> Lines:  # noqa: ARG002 - rich's signature
        """As rich's."""
        lines = Lines()
        for line in self.split(allow_blank=True):
            fits = line.cell_len <= width or how.get("no_wrap")
            lines.extend([line] if fits else self.hang(line, width))
        return lines

    def hang(self, line: Text, width: int, whole: Iterable[str] = ()) -> Iterator[Text]:
        """The lines of one that is too long; what is to stay ``whole`` is broken as little as a word is."""
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
    """Where a text is broken: between words; a word that is too long for a line, such as a list of hosts or a path,
    behind a comma or a slash, and elsewhere only where it has none."""
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
    """How deep a line begins, and how deep it continues."""
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    return indent, min(indent + _DEEPER, width // 2)


class Listed(Hanging):
    """Parts with commas between them, such as how many hosts ended how: broken behind commas and colons alone."""

    def hang(self, line: Text, width: int, whole: Iterable[str] = ()) -> Iterator[Text]:
        """As of any hanging text."""
        return super().hang(line, width, [*whole, *re.split(r"[:,] ", line.plain)])


def with_sums(shown: Group) -> Group:
    """What a room below made, whose last line counts hosts by how they ended."""
    *parts, last = shown.renderables
    return Group(*parts, Listed.of(last) if isinstance(last, Text) else last)


class Quoted(Hanging):
    """A line of a file, as it is: no command in it is ours, and it is never broken, so that it can be copied."""

    def wrap(self, console: Console, width: int, **how: Any) -> Lines:  # noqa: ARG002 - rich's signature
        """As rich's."""
        return self.split(allow_blank=True)


class Advice(Hanging):
    """Text with commands, each of which can be copied whole: one that does not fit a line has a line of its own, and
    only the terminal wraps that. One that we broke would run its first half."""

    commands: tuple[str, ...] = ()

    def hang(self, line: Text, width: int, whole: Iterable[str] = ()) -> Iterator[Text]:
        """As of any hanging text, around the commands."""
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
    """Rows below their titles, without columns in which nothing stands. Where that is wider than a terminal, what the
    columns behind the first two say stands below each row, with their titles: a name is in one piece everywhere.

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
    """A table without the blanks at the ends of its lines: one long cell would fill every line of a log with them."""

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
    """A console on which the commands that texts advise work as printed (``hostwright.cli.shell.advice``).

    In a terminal, a sentence that is longer than a line continues deeper. Elsewhere nothing is wrapped, as wide as it
    may be: who reads a log, with whatever program, gets each sentence and each host on one line.
    """

    def __init__(self, *, stderr: bool):
        super().__init__(stderr=stderr, highlight=False, theme=THEME)
        self._call = copy_context()  # what is known of the call, also where a host's own thread prints
        self._bounded = on_terminal(self)
        if not self._bounded:
            self.width = UNBOUNDED

    def print(self, *objects: Any, **how: Any) -> None:
        """As rich's; lines that may not be wrapped, those with commands, are not cut off either."""
        shown = self._call.copy().run(lambda: [self._complete(one) for one in objects])
        if len(shown) == 1 and isinstance(shown[0], Hanging) and "end" not in how:
            shown = [Group(*shown)]  # of a text by itself rich makes another one, which hangs no more
        super().print(*shown, **{"crop": False, **how})

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002 - rich's signature
        """Leave it as it is: what ends or stops a verb (SIGTERM, Ctrl-Z, no memory) cannot leave it hidden then."""
        return False

    def on_broken_pipe(self) -> None:
        """Leave it to who ends the verb (``hostwright.cli.exits``); rich would end it here, with 1."""
        raise  # noqa: PLE0704 - rich calls this where it handles the error

    def _complete(self, shown: Any) -> Any:
        if isinstance(shown, Group):
            return Group(*map(self._complete, shown.renderables))
        if isinstance(shown, Table) and not self._bounded:
            return Ragged(shown)
        if isinstance(shown, str):
            return advice.completed(shown)
        if isinstance(shown, Text) and not isinstance(shown, Quoted):
            quoted = shown.plain.lstrip().startswith(OUTPUT)  # no command in it is ours
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
    """The console of a run: rich decides about colour; what is no terminal gets lines of any length."""
    return Adviser(stderr=stderr)


def on_terminal(console: Console) -> bool:
    """Whether a terminal shows it. A log for which the environment asks for colours is none."""
    asked = any(os.environ.get(name) for name in streams.COLOURED)
    return console.is_terminal and (not asked or console.file.isatty())


def redraws(console: Console) -> bool:
    """Whether a terminal shows it that can move its cursor (``TERM=dumb`` cannot)."""
    return on_terminal(console) and not console.is_dumb_terminal
