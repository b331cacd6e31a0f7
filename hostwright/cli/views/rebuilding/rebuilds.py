"""Prints how each host will be rebuilt (the decisions), and the results of rebuilds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.apply.rollout.rollout import result_of
from hostwright.cli import console
from hostwright.cli.shell import advice
from hostwright.cli.views.shared import (
    errors_json,
    print_document,
    show_command,
    show_errors,
    show_next,
    show_next_of_errors,
    show_stand_ins,
    style_of_ends,
)
from hostwright.common.command import Command
from hostwright.common.errors import AS_DESIRED, DIFFERS, FAILED
from hostwright.common.text import count, printable, shown_seconds
from hostwright.fleet import TargetHost
from hostwright.inventory.patterns import counted, fold, headed
from hostwright.rebuild.rebuild import PHASES, Outcome, Rebuild, Start
from hostwright.rebuild.run import ENDED, Decisions, Rebuilt
from hostwright.rebuild.ways.ways import Decision

GOOD = frozenset({"rebuilt", "as desired"})
#: minimum width in columns of the table of decisions
LEAST_COLUMNS = 100
NAMES = 4  #: number by which the table's width is divided for the maximum width of host names
STYLES: Mapping[Outcome, str] = {"rebuilt": "green", "as desired": "green", "failed": "red", "handed over": "yellow"}


def show_decisions(
    targets: Sequence[TargetHost], decisions: Decisions, *, start: Start | None = None, as_json: bool
) -> None:
    """Print how each host would be rebuilt. ``start`` is the method that ``--from`` requests."""
    if as_json:
        hosts = {name: asdict(decision) for name, decision in decisions.of.items()}
        print_document("decisions", {"decisions": hosts, "errors": errors_json(decisions.errors)})
        return
    announce(decisions)
    show_errors(decisions.errors)
    words = Counter(_word(decision) for decision in decisions.of.values())
    parts = [f"{number} {word}" for word, number in words.items()]
    parts += [f"{len(decisions.errors)} not diagnosed, see above"] if decisions.errors else []
    out, number = console.make_console(), len(decisions.of) + len(decisions.errors)
    out.print(console.Listed(f"{count(number, 'host')}: {', '.join(parts)}", style="bold"))
    if due := [name for name, decision in decisions.of.items() if decision.way != "nothing"]:
        done = [name for name, decision in decisions.of.items() if decision.way == "nothing"]
        show_next(out, Command("rebuild", from_=start), due, targets, done=done)


def _word(decision: Decision) -> str:
    if decision.way == "nothing":
        return "left alone" if decision.refusal else "as desired"
    return f"to {decision.way}"


def announce(decisions: Decisions) -> None:
    """Print how each host will be rebuilt."""
    if decisions.of:
        out = console.make_console()
        out.print(decisions_table(decisions.of, columns=out.width))


def status_of(decisions: Decisions) -> int:
    """Return the exit status of a call that only diagnosed hosts: 1 for errors or refusals, 3 for any work, else 0."""
    if decisions.errors or any(decision.refusal for decision in decisions.of.values()):
        return FAILED
    return AS_DESIRED if all(decision.way == "nothing" for decision in decisions.of.values()) else DIFFERS


def show_rebuilt(targets: Sequence[TargetHost], rebuilt: Rebuilt, *, took_s: float = 0.0, as_json: bool) -> None:
    """Print the result of each host's rebuild. The call took ``took_s`` seconds."""
    results = rebuilt.results
    if as_json:
        print_document("rebuild", _document(rebuilt))
        return
    out = console.make_console()
    if rebuilt.decisions:
        out.print()
    out.print(rebuilds_table(results.values))
    show_errors(rebuilt.errors)
    if results.untouched:
        out.print(Text(f"{counted(results.untouched)}: not started, {results.stopped_because}", style="yellow"))
    show_stand_ins(targets, results, out)
    words = Counter(
        [each.outcome for each in results.values]
        + [result_of(error) for error in rebuilt.errors]
        + ["untouched"] * len(results.untouched)
    )
    text = ", ".join(f"{number} {word}" for word, number in words.items())
    style = style_of_ends(words, GOOD)
    out.print(console.Listed(f"{count(words.total(), 'host')} in {shown_seconds(took_s)}: {text}", style=style))
    if rebuilt.run:
        show_command(out, "every step", Command("runs.show", run=rebuilt.run, details=True))
    bad = [record.host for record in results.values if ENDED[record.outcome] == "failed"]
    show_next_of_errors(out, Command("rebuild"), rebuilt.errors, targets, bad)


def _document(rebuilt: Rebuilt) -> dict[str, Any]:
    return {
        "run": rebuilt.run,
        "decisions": {name: asdict(decision) for name, decision in rebuilt.decisions.items()},
        "rebuilds": [{**asdict(record), "at": record.at.isoformat()} for record in rebuilt.results.values],
        "errors": errors_json(rebuilt.errors),
        "untouched": list(rebuilt.results.untouched),
        "stopped_because": rebuilt.results.stopped_because,
    }


def decisions_table(decisions: Mapping[str, Decision], *, columns: int = console.UNBOUNDED) -> RenderableType:
    """Return the decisions as a table. Hosts with equal decisions are in one row.

    In a terminal with few ``columns``, or with long names, the decisions are paragraphs.
    """
    same: dict[Decision, list[str]] = {}
    for name, decision in decisions.items():
        same.setdefault(decision, []).append(name)
    if columns < LEAST_COLUMNS or any(len(fold(names)) > columns // NAMES for names in same.values()):
        return Group(*(line for decision, names in same.items() for line in _decision_lines(decision, names)))
    table = Table(box=None, pad_edge=False, header_style="dim")
    ends = ("ends",) if any(decision.ends for decision in decisions.values()) else ()
    for column in ("host", "way", "because", *ends, "steps", "if that fails"):
        table.add_column(column, overflow="fold", no_wrap=column == "host")
    for decision, names in same.items():
        table.add_row(
            console.Hanging(fold(names)),
            _way(decision),
            Text(printable("; ".join(decision.reasons))),
            *(Text(printable(", ".join(decision.ends)) or "nobody", style="red") for _ in ends),
            " → ".join(decision.steps) or "–",
            ", then ".join(decision.escalation) or "–",
        )
    return table


def _way(decision: Decision) -> Text:
    way = "left alone" if decision.refusal and decision.way == "nothing" else decision.way
    return Text(way, style="red" if decision.refusal else "bold")


def _decision_lines(decision: Decision, names: Sequence[str]) -> Iterator[Text]:
    head, below = headed(names)
    yield console.Hanging.assemble(f"{head}: ", _way(decision))
    if below and decision.way != "nothing":
        yield console.Hanging(f"  {below}", style="dim")
    yield console.Hanging(f"  because {printable('; '.join(decision.reasons))}")
    if decision.ends:
        yield console.Hanging(f"  ends the jobs of {printable(', '.join(decision.ends))}", style="red")
    if decision.steps:
        yield console.Hanging(f"  steps: {' → '.join(decision.steps)}")
    if decision.escalation:
        yield console.Hanging(f"  if that fails: {', then '.join(decision.escalation)}")


def rebuilds_table(rebuilds: tuple[Rebuild, ...]) -> RenderableType:
    """Return a table with a row per group of hosts with equal results, then phases and reasons of failures."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    several = len(rebuilds) > 1
    for column in ("host", "outcome", "way", "longest" if several else "time"):
        table.add_column(column, overflow="fold", justify="right" if column in ("longest", "time") else "left")
    alike: dict[tuple[Outcome, str, str], list[Rebuild]] = {}
    for rebuild in sorted(rebuilds, key=lambda rebuild: ENDED[rebuild.outcome] == "failed"):
        alike.setdefault((rebuild.outcome, rebuild.way, rebuild.sentence), []).append(rebuild)
    for (outcome, way, _), same in alike.items():
        names = headed(each.host for each in same)[0]
        longest = shown_seconds(max(each.total_s for each in same))
        table.add_row(console.Hanging(names), Text(outcome, style=STYLES[outcome]), way, longest)
    parts: list[RenderableType] = [table]
    phases = _phases(rebuilds)
    parts += [Text(""), phases] if phases.row_count else []
    parts += [
        console.Hanging(
            f"{counted(each.host for each in same)}: "
            + advice.of_host(printable(sentence), fold(each.host for each in same)),
            style=STYLES[outcome],
        )
        for (outcome, _, sentence), same in alike.items()
        if sentence
    ]
    return Group(*parts)


def _phases(rebuilds: Sequence[Rebuild]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    several = len(rebuilds) > 1
    for column in ("phase", *(["hosts"] if several else []), "longest" if several else "time"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for phase in PHASES:
        times = [sum(took_s for name, took_s in rebuild.phases if name == phase) for rebuild in rebuilds]
        if any(times):
            hosts = [f"{sum(bool(time) for time in times)}"] if several else []
            table.add_row(phase, *hosts, shown_seconds(max(times)))
    return table
