"""What the operator sees: a live table in a terminal, plain lines elsewhere, plans with diffs, errors.

Everything that came from a host passes ``printable`` first: control characters and direction marks of a hostile host
never reach the terminal.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextvars import copy_context
from typing import Any, Self

from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.containers import Lines
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from hostwright.apply.host.outcome import Outcome
from hostwright.apply.rollout.rollout import result_of
from hostwright.cli.door import advice
from hostwright.common.errors import (
    Acceptance,
    HostError,
    HostwrightError,
    ScriptFailed,
    SeveralFailed,
    StepFailed,
)
from hostwright.common.text import count, one_line, printable, shown_seconds
from hostwright.inventory.patterns import fold
from hostwright.plan.model import Change, Deferred, Planned, Refusal, RolePlan
from hostwright.plan.planning import HostPlan
from hostwright.plan.roles.layers import one_order

_SIGNS = {"change": ("~", ""), "reboot": ("~", ""), "deferred": ("?", "dim"), "refusal": ("!", "red")}  #: and style
UNBOUNDED = 1_000_000  #: columns of what is no terminal: nothing that we print is as long
_DEEPER = 4  #: columns
_MOST_PER_COLUMN = 4  #: characters, where marks are drawn over others
COLOURED = ("FORCE_COLOR", "TTY_COMPATIBLE")  #: variables with which rich takes every log for a terminal
#: Yellow is unreadable on a light background. The contrast of this brown is 4.7 with white and 4.5 with black.
#: Terminals of 16 colours still show yellow.
THEME = Theme({"yellow": "color(130)"})
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

    def hang(self, line: Text, width: int) -> Iterator[Text]:
        """The lines of one that is too long."""
        indent, deeper = _indents(line, width)
        text = line[indent:]
        for number, part in enumerate(text.divide(_breaks(text.plain, width - deeper))):
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


class Quoted(Hanging):
    """A line of a file, as it is: no command in it is ours. In a terminal it hangs as any other, since what only the
    terminal wraps begins at its edge, where it could pass for another host's."""


class Advice(Hanging):
    """Text with commands, each of which can be copied whole: in a line that is too long, a command has one of its own,
    and only the terminal wraps that. One that we broke would run its first half."""

    commands: tuple[str, ...] = ()

    def hang(self, line: Text, width: int) -> Iterator[Text]:
        """As of any hanging text, around the commands."""
        _, deeper = _indents(line, width)
        for command in self.commands:
            start = line.plain.find(command)
            if start < 0:
                continue
            before, after = line[:start], line[start + len(command) :]
            if before.plain.endswith("`"):
                before.right_crop(1)
            before.rstrip()
            yield from super().hang(before, width)
            yield Text.assemble(" " * deeper, line[start : start + len(command)])
            rest = after.plain.removeprefix("`").lstrip(" ")
            if not rest.strip("`'."):
                return
            line = Text.assemble(" " * deeper, after[len(after.plain) - len(rest) :])
        yield from super().hang(line, width)


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
    """A console on which the commands that texts advise work as printed (``hostwright.cli.door.advice``).

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

    def _complete(self, shown: Any) -> Any:
        if isinstance(shown, Group):
            return Group(*map(self._complete, shown.renderables))
        if isinstance(shown, Table) and not self._bounded:
            return Ragged(shown)
        if isinstance(shown, str):
            return advice.completed(shown)
        if isinstance(shown, Text) and not (isinstance(shown, Quoted) or shown.plain.lstrip().startswith(OUTPUT)):
            changes = [*advice.insertions(shown.plain)]
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
    asked = any(os.environ.get(name) for name in COLOURED)
    return console.is_terminal and (not asked or console.file.isatty())


def redraws(console: Console) -> bool:
    """Whether a terminal shows it that can move its cursor (``TERM=dumb`` cannot)."""
    return on_terminal(console) and not console.is_dumb_terminal


def show_plan(host_plan: HostPlan, *, brief: bool = False) -> RenderableType:
    """A host's plan as text: one line per change (have → want), the diff of each file, what is only known later.
    ``brief``: one line per layer, with what is changed."""
    return Group(*_plan_lines(host_plan, host_plan.host, brief=brief))


def show_plans(host_plans: Iterable[HostPlan], *, brief: bool = False) -> Iterator[RenderableType]:
    """The plans of hosts as text. Hosts whose plans read alike share one, at the place of the first of them."""
    alike: dict[tuple[str, ...], list[HostPlan]] = {}
    for host_plan in host_plans:
        alike.setdefault(tuple(line.plain for line in _plan_lines(host_plan, "", brief=brief)), []).append(host_plan)
    for same in alike.values():
        yield Group(*_plan_lines(same[0], fold(each.host for each in same), len(same), brief=brief))


def _plan_lines(host_plan: HostPlan, hosts: str, number: int = 1, *, brief: bool) -> list[Text]:
    plan = host_plan.plan
    name = f"{hosts} ({number} hosts)" if number > 1 else hosts
    about = [advice.of_host(one_line(note), hosts) if hosts else one_line(note) for note in host_plan.notes]
    notes = [Hanging(f"  {note}", style="yellow") for note in about]
    if plan.empty:
        return [Hanging.assemble((name, "bold"), "  as desired: nothing to do", style="green"), *notes]
    lines = [
        Hanging.assemble((name, "bold"), f"  {count(len(plan.changes), 'change')} to {plan.stack}", style="yellow"),
        *notes,
    ]
    for role in plan.roles:
        lines += [_show_briefly(role)] if brief else _show_role(role)
    if host_plan.busy:
        users = ", ".join(one_line(user) for user in host_plan.busy)
        lines.append(Hanging(f"  in use by {users}: it needs --drain or --force ({plan.disturbs})", style="red"))
    if plan.reboot:
        lines.append(Hanging(f"  then a reboot: {one_line(plan.reboot)}", style="magenta"))
    return lines


def _show_role(role: RolePlan) -> Iterable[Text]:
    yield Hanging(f"  {role.role}", style="bold cyan")
    for change in role.changes:
        yield _show_planned(change)
        for sentence in change.warnings if isinstance(change, Change) else ():
            yield Hanging(f"      {one_line(sentence)}", style="yellow")
        if isinstance(change, Change) and change.final:
            sentence = f"takes away {one_line(change.final)}; nothing brings that back (--yes, or an answer, agrees)"
            yield Hanging(f"      {sentence}", style="red")
        for line in change.diff.splitlines() if isinstance(change, Change) else ():
            yield Quoted(f"        {one_line(line)}", style=_diff_style(line))


def _show_briefly(role: RolePlan) -> Text:
    told = ", ".join(dict.fromkeys(one_line(change.what) for change in role.changes))
    refused = any(isinstance(change, Refusal) for change in role.changes)
    text = Hanging.assemble((f"  {role.role}", "bold cyan"), f"  {count(len(role.changes), 'change')}: ")
    return text.append(told, style="red" if refused else "")


def _show_planned(planned: Planned) -> Text:
    sign, style = _SIGNS[planned.kind]
    text = Hanging(f"    {sign} {one_line(planned.what)}: ", style=style)
    text.append(f"{one_line(planned.have)} → {one_line(planned.want)}")
    match planned:
        case Deferred(until=until):
            text.append(f"  (known after {one_line(until)})", style="dim")
        case Change(opaque=True):
            text.append("  (opaque: a script decides)", style="dim")
        case Refusal(sentence=sentence):
            text.append(f"\n      refused: {one_line(sentence)}", style="red")
    return text


def _diff_style(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")


def show_error(error: HostwrightError) -> RenderableType:
    """An error as the operator should read it: the sentence first, then the step and the end of its output."""
    if isinstance(error, SeveralFailed):
        return Group(*(show_error(part) for part in error.errors))
    said = advice.of_host(str(error), error.host) if isinstance(error, HostError) else str(error)
    sentence = "\n    ".join(printable(said).splitlines())  # what a host says never begins a line
    parts: list[RenderableType] = [Hanging(sentence, style="bold red")]
    if isinstance(error, StepFailed):
        step = error.step
        parts.append(Hanging(f"  role {step.role}, {printable(step.what)}, exit status {step.status}; its last lines:"))
        parts += [Hanging(f"    │ {printable(line)}", style="dim") for line in step.tail]
    elif isinstance(error, ScriptFailed) and len(error.lines) > 1:
        parts.append(Hanging(f"  exit status {error.status}; its last lines:"))
        parts += [Hanging(f"    │ {printable(line)}", style="dim") for line in error.lines]
    return Group(*parts)


def summary(
    outcomes: Iterable[Outcome], errors: Iterable[HostError], untouched: Sequence[str] = (), *, proved: bool = False
) -> Group:
    """What came of hosts, those to which the same happened in one line, the bad ones last; then each layer once.

    ``proved``: proofs were asked for, and are counted.
    """
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("host", "result", *(["proofs"] if proved else [])):
        table.add_column(column, overflow="fold")
    alike: dict[tuple[str, str, tuple[str, str]], list[str]] = {}

    def add(host: str, result: Text, acceptance: Iterable[Acceptance]) -> None:
        proofs = _proofs(acceptance)
        alike.setdefault((result.plain, str(result.style), (proofs.plain, str(proofs.style))), []).append(host)

    ended = [*outcomes]
    for outcome in sorted(ended, key=_left):
        add(outcome.host, _result(outcome), outcome.acceptance)
    if untouched:
        alike["untouched", "yellow", ("", "")] = [*untouched]
    for error in errors:
        add(error.host, Text(f"{result_of(error)}, see below", style="red"), error.acceptance)
    for (result, style, proofs), hosts in alike.items():
        names = fold(hosts) + (f" ({len(hosts)} hosts)" if len(hosts) > 1 else "")
        table.add_row(Hanging(names), Text(result, style=style), *([Text(*proofs)] if proved else []))
    layers = _layers(ended)
    return Group(table, Text(""), layers) if layers.row_count else Group(table)


def _left(outcome: Outcome) -> bool:
    return outcome.left is not None and not outcome.left.empty


def _layers(outcomes: Sequence[Outcome]) -> Table:
    """Each layer on which something was done, once: how many steps it took, and how long."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    several = len(outcomes) > 1
    for column in ("layer", *(["hosts"] if several else []), "steps", "longest" if several else "time"):
        table.add_column(column, justify="left" if column == "layer" else "right")
    for name in one_order([result.role for result in outcome.results] for outcome in outcomes):
        of_hosts = [[result for result in outcome.results if result.role == name] for outcome in outcomes]
        times = [sum(result.duration_s for result in results) for results in of_hosts if results]
        steps = sum(len(result.steps) for results in of_hosts for result in results)
        table.add_row(name, *([f"{len(times)}"] if several else []), f"{steps}", shown_seconds(max(times)))
    return table


def _proofs(acceptance: Iterable[Acceptance]) -> Text:
    """How many proofs came to which end: ``1 failed, 3 passed``; the sentence of a failed one is the host's error."""
    number = Counter(one.outcome for one in acceptance)
    if not number:
        return Text("not proved", style="yellow")
    good = number.keys() <= {"passed", "no GPU"}
    return Text(", ".join(f"{number[word]} {word}" for word in sorted(number)), style="green" if good else "red")


def _result(outcome: Outcome) -> Text:
    if outcome.left is not None and not outcome.left.empty:
        return Text(f"left to do: {len(outcome.left.changes)} (reboot pending)", style="yellow")
    if not outcome.changed:
        return Text("as desired, nothing done", style="green")
    done = f"done, {count(sum(len(result.steps) for result in outcome.results), 'step')}"
    return Text(done + (f", {count(outcome.reboots, 'reboot')}" if outcome.reboots else ""), style="green")
