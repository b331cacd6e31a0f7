"""What a terminal showed, as SVG: one screen, or screens one after the other as a moving picture.

A line that stands for some time, in whatever rows, is drawn once. Where nothing can move, or the reader wants that,
the last screen is shown. The font is the reader's own: nothing is fetched.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

LIGHT, DARK = DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
COLUMN, LINE, SIZE, EDGE = 8.4, 18, 14, 12  #: of one character and around all, in the picture's units
MOST_S, END_S = 1.2, 6.0  #: our choice: how long a screen stands in a moving picture, and the last one


@dataclass(frozen=True)
class Frame:
    """A screen with its escape sequences, and when it was there, in seconds of any clock."""

    at_s: float
    ansi: str


def paced(frames: Sequence[Frame]) -> list[Frame]:
    """The frames that differ, from 0 on; nobody waits longer than ``MOST_S`` for the next one."""
    kept: list[Frame] = []
    at_s, before_s = 0.0, 0.0
    for frame in frames:
        at_s += min(frame.at_s - before_s, MOST_S) if kept else 0.0
        before_s = frame.at_s
        if not kept or kept[-1].ansi != frame.ansi:
            kept.append(replace(frame, at_s=at_s))
    return kept


def draw(ansi: str, columns: int, *, rows: int = 0, theme: TerminalTheme = DARK) -> str:
    """One screen of at least ``rows`` lines."""
    return animate([Frame(0.0, ansi)], columns, rows=max(rows, ansi.count("\n") + 1), theme=theme)


def animate(frames: Sequence[Frame], columns: int, *, rows: int, theme: TerminalTheme = DARK) -> str:
    """Screens one after the other, again and again; the first one at 0."""
    lasts_s = frames[-1].at_s + END_S
    shown: dict[tuple[int, str], list[tuple[float, float]]] = {}  # row and line → from when to when, as shares
    console = Console(width=columns, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for frame, after_s in zip(frames, [*(frame.at_s for frame in frames[1:]), lasts_s], strict=True):
        for row, text in enumerate(Text.from_ansi(frame.ansi).split("\n", allow_blank=True)[:rows]):
            line = "".join(_runs(text, console, theme))
            times = shown.setdefault((row, line), [])
            span = (frame.at_s / lasts_s, after_s / lasts_s)
            if times and times[-1][1] == span[0]:
                times[-1] = (times[-1][0], span[1])
            else:
                times.append(span)
    lines = {line: f"l{number}" for number, line in enumerate(dict.fromkeys(line for _, line in shown if line))}
    spans = dict.fromkeys(tuple(times) for times in shown.values())
    moves = {times: f"m{number}" for number, times in enumerate(spans) if times != ((0.0, 1.0),)}
    background = theme.background_color.hex
    width, height = columns * COLUMN + 2 * EDGE, rows * LINE + 2 * EDGE
    return "\n".join(
        [
            f'<svg viewBox="0 0 {width:g} {height}" xmlns="http://www.w3.org/2000/svg">',
            f"<style>text{{font:{SIZE}px {FONT};white-space:pre}}.b{{font-weight:bold}}.d{{opacity:.6}}",
            *(f"@keyframes {name}{{{_keyframes(times)}}}" for times, name in moves.items()),
            *(
                f".{name}{{animation:{name} {lasts_s:.2f}s step-end infinite"
                f"{'' if times[-1][1] == 1.0 else ';visibility:hidden'}}}"
                for times, name in moves.items()
            ),
            "@media (prefers-reduced-motion:reduce){use{animation:none!important}}</style>",
            "<defs>",
            *(f'<g id="{name}">{line}</g>' for line, name in lines.items()),
            "</defs>",
            f'<rect width="{width:g}" height="{height}" rx="8" fill="{background}"/>',
            *(
                f'<use href="#{lines[line]}" x="{EDGE}" y="{EDGE + row * LINE}"'
                + (f' class="{moves[tuple(times)]}"' if tuple(times) in moves else "")
                + "/>"
                for (row, line), times in shown.items()
                if line
            ),
            "</svg>\n",
        ]
    )


def _keyframes(times: Sequence[tuple[float, float]]) -> str:
    """When a line is seen, as steps."""
    steps = {0.0: "hidden"}
    for begin, end in times:
        steps |= {begin: "visible", end: "hidden"}
    steps[1.0] = "visible" if times[-1][1] == 1.0 else "hidden"
    return "".join(f"{share:.2%}{{visibility:{seen}}}" for share, seen in steps.items())


def _runs(text: Text, console: Console, theme: TerminalTheme) -> Iterator[str]:
    """The parts of a line that look alike, each at its columns: a reader's font may be wider or narrower."""
    column = 0
    for segment in text.render(console):
        style, words = segment.style or Style(), segment.text.rstrip("\n")
        wide = cell_len(words)
        x, reach = f"{column * COLUMN:.1f}", f"{wide * COLUMN:.1f}"
        ink, paper = _colours(style, theme)
        if paper:
            yield f'<rect x="{x}" width="{reach}" height="{LINE}" fill="{paper}"/>'
        if words.strip():
            marks = " ".join(mark for mark, true in (("b", style.bold), ("d", style.dim)) if true)
            yield (
                f'<text x="{x}" y="{SIZE}" textLength="{reach}" fill="{ink}"'
                + (f' class="{marks}"' if marks else "")
                + f">{escape(words, quote=False)}</text>"
            )
        column += wide


def _colours(style: Style, theme: TerminalTheme) -> tuple[str, str]:
    """The colour of the characters, and what is behind them where that is not the terminal's own."""
    ink = (style.color.get_truecolor(theme) if style.color else theme.foreground_color).hex
    paper = style.bgcolor.get_truecolor(theme, foreground=False).hex if style.bgcolor else ""
    return (paper or theme.background_color.hex, ink) if style.reverse else (ink, paper)
