"""Prints stacks: their versions, their distributions, and where they were tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.cli import console
from hostwright.cli.console import Hanging
from hostwright.cli.views.shared import print_document
from hostwright.common.text import printable
from hostwright.plan.stacks.listing import ListedStack
from hostwright.stack.ages import NONE, Advisories, Floor, aged, day_of, lifetimes, numbers, words
from hostwright.stack.bulletins import Read
from hostwright.stack.stack import Stack
from hostwright.stack.tried import Trial, TriedRole, by_release

STYLES = {"tried": "green", "planned": "yellow", "not tried": "dim"}


def show_stacks(listed: Sequence[ListedStack], advisories: Advisories = NONE, *, as_json: bool) -> None:
    """Print all stacks."""
    if as_json:
        print_document("stacks", {"stacks": [stack_json(stack, advisories) for stack in listed]})
        return
    out = console.make_console()
    for stack in listed:
        out.print(stack_view(stack, advisories))


def show_bulletins(read: Read, *, as_json: bool) -> None:
    """Print the result of reading security bulletins, and the newest minimum version of each driver series."""
    newest: dict[tuple[str, str], Floor] = {}
    for name, product in read.advisories.products.items():
        for floor in sorted(product.floors, key=lambda floor: (floor.published, numbers(floor.version))):
            newest[name, floor.series or ""] = floor
    rows = [(name, floor) for (name, _), floor in sorted(newest.items())]
    if as_json:
        floors = [{"product": name, **floor.model_dump(mode="json")} for name, floor in rows]
        print_document("advisories", {"bulletins": read.bulletins, "skipped": len(read.skipped), "floors": floors})
        return
    out = console.make_console()
    others = f"; {len(read.skipped)} other files were skipped" if read.skipped else ""
    out.print(Text(f"{read.bulletins} bulletins read{others}"))
    for name, floor in rows:
        sentence = f"  {name}: {floor.version} or newer ({words(floor.published)}, bulletin {floor.bulletin})"
        out.print(Text(printable(sentence)), soft_wrap=True)


def stack_json(listed: ListedStack, advisories: Advisories = NONE) -> dict[str, Any]:
    """Return a listed stack, or the error in its file, as JSON values."""
    head = {"name": listed.name, "file": str(listed.file), "standard": listed.standard, "problem": listed.problem}
    stack = listed.stack
    if stack is None:
        return head
    return {
        **head,
        "description": stack.description,
        "versions": stack.versions(),
        "distributions": {name: list(releases) for name, releases in stack.distributions.items() if releases},
        "roles": list(stack.roles),
        "aged": [one.sentence for one in aged(advisories, stack.versions(), day_of(None))],
        "lifetimes": list(lifetimes(advisories, stack.versions(), day_of(None))),
        "stand_ins": [one.labelled(one.name) for one in stack.used_by(stack.roles) if one.stand_in],
        "matrix": [_cell_json(cell) for cell in listed.matrix],
    }


def _cell_json(cell: TriedRole) -> dict[str, Any]:
    trials = [
        trial.model_dump(mode="json", include={"host", "verbs", "stand_ins", "tests", "date"}) for trial in cell.trials
    ]
    return {
        "distribution": cell.distribution,
        "release": cell.release,
        "role": cell.role,
        "state": cell.state,
        "trials": trials,
    }


def stack_view(listed: ListedStack, advisories: Advisories = NONE) -> RenderableType:
    """Return the description of one listed stack as text."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for label, text in _rows(listed, advisories):
        table.add_row(label, text)
    return Group(Text(printable(listed.name), style="bold"), table, Text())


def _rows(listed: ListedStack, advisories: Advisories) -> Iterator[tuple[str, Text]]:
    if listed.stack:
        yield "  what", Text(printable(listed.stack.description))
    yield "  file", Hanging(f"{printable(str(listed.file))} ({'standard' if listed.standard else 'of this site'})")
    if listed.stack is None:
        yield "  problem", Text(printable(listed.problem), style="red")
        return
    yield from ((f"  {label}", Text(printable(text))) for label, text in _pinned(listed.stack))
    today, versions = day_of(None), listed.stack.versions()
    if lives := lifetimes(advisories, versions, today):
        yield "  fixes", Hanging(printable(", ".join(lives)))
    if old := aged(advisories, versions, today):
        yield "  ages", Hanging(printable("; ".join(one.sentence for one in old)), style="yellow")
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for row in by_release(listed.matrix):
        known = tuple(_tried(row))
        alike.setdefault(known, []).append(printable(f"{row[0].distribution} {row[0].release}"))
    for known, releases in alike.items():
        (style, line), *more = known
        if more:
            yield "  tried", Text(f"{', '.join(releases)}:")
            yield from (("", Hanging(f"  {line}", style=style)) for style, line in known)
        else:
            yield "  tried", Hanging(f"{', '.join(releases)}: {line}", style=style)


def _pinned(stack: Stack) -> Iterator[tuple[str, str]]:
    yield "pins", ", ".join(f"{name} {version}" for name, version in stack.versions().items())
    yield "for", ", ".join(f"{name} {release}" for name, all_of in stack.distributions.items() for release in all_of)
    yield "roles", ", ".join(stack.roles)
    if stand_ins := stack.stand_ins(stack.roles):
        yield "stand-ins", ", ".join(stand_ins)


def _tried(row: Sequence[TriedRole]) -> Iterator[tuple[str, str]]:
    known = sorted(row, key=_sentence)
    groups = [(sentence, list(some)) for sentence, some in groupby(known, key=_sentence)]
    for sentence, some in sorted(groups, key=lambda group: row.index(group[1][0])):
        names = "" if len(groups) == 1 else ", ".join(cell.role for cell in some) + ": "
        yield STYLES[some[0].state], printable(names + sentence)


def _sentence(cell: TriedRole) -> str:
    return "; ".join(_trial(trial) for trial in _telling(cell.trials)) or "not tried"


def _telling(trials: Iterable[Trial]) -> list[Trial]:
    every = list(trials)
    return [trial for trial in every if trial.state == "tried"] or every


def _trial(trial: Trial) -> str:
    if trial.host == "facts":
        return "only planned, from made-up facts; never on a host"
    verbs = "planned" if trial.state == "planned" else ", ".join(trial.verbs)
    day = f"recorded {trial.date}" if trial.date else "no run recorded"
    stand_ins = f"; stand-ins for {', '.join(trial.stand_ins)}" if trial.stand_ins else ""
    return f"{verbs} on lab hosts ({day}{stand_ins})"
