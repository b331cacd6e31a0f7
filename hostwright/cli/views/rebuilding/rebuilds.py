"""Rebuilds: what is going to be done with each host, and what came of it."""

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
from hostwright.cli.door import advice
from hostwright.cli.views.shared import errors_json, print_document, show_errors, show_next_of_bad, show_stand_ins
from hostwright.common.text import count, printable, shown_seconds
from hostwright.fleet import Member
from hostwright.inventory.patterns import fold
from hostwright.rebuild.rebuild import Outcome, Rebuild
from hostwright.rebuild.run import ENDED, Decisions, Rebuilt
from hostwright.rebuild.ways.ways import Decision

STYLES: Mapping[Outcome, str] = {"rebuilt": "green", "as desired": "green", "failed": "red", "handed over": "yellow"}


def show_decisions(decisions: Decisions, *, as_json: bool) -> None:
    """What would be done with each host, where nothing is."""
    if as_json:
        hosts = {name: asdict(decision) for name, decision in decisions.of.items()}
        print_document("decisions", {"decisions": hosts, "errors": errors_json(decisions.errors)})
        return
    announce(decisions)
    show_errors(decisions.errors)


def announce(decisions: Decisions) -> None:
    """What is going to be done with each host, before anything is."""
    if decisions.of:
        out = console.make_console()
        out.print(decisions_table(decisions.of, columns=out.width))


def show_rebuilt(members: Sequence[Member], rebuilt: Rebuilt, *, as_json: bool) -> None:
    """What came of each host."""
    results = rebuilt.results
    if as_json:
        print_document("rebuild", _document(rebuilt))
        return
    out = console.make_console()
    out.print(rebuilds_table(results.values))
    show_errors(rebuilt.errors)
    if results.untouched:
        out.print(Text(f"{fold(results.untouched)}: not started, {results.stopped_because}", style="yellow"))
    show_stand_ins(members, results, out)
    words = Counter(
        [each.outcome for each in results.values]
        + [result_of(error) for error in rebuilt.errors]
        + ["untouched"] * len(results.untouched)
    )
    told = ", ".join(f"{number} {word}" for word, number in words.items())
    out.print(Text(f"{count(words.total(), 'host')}: {told}", style="bold"))
    if rebuilt.run:
        out.print(Text(f"every step: invoke runs.show --run {rebuilt.run}", style="dim"))
    bad = [record.host for record in results.values if ENDED[record.outcome] == "failed"]
    show_next_of_bad(out, bad, rebuilt.errors, members)


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
    """What is going to be done, before anything is: equal decisions in one row, or, where hosts are too many for a
    column of their names, below each other."""
    same: dict[Decision, list[str]] = {}
    for name, decision in decisions.items():
        same.setdefault(decision, []).append(name)
    if any(len(fold(names)) > columns // 3 for names in same.values()):
        return Group(*(line for decision, names in same.items() for line in _decision_lines(decision, names)))
    table = Table(box=None, pad_edge=False, header_style="dim")
    ends = ("ends",) if any(decision.ends for decision in decisions.values()) else ()
    for column in ("host", "way", "because", *ends, "steps", "if that fails"):
        table.add_column(column, overflow="fold")
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
    """One decision for many hosts."""
    number = f" ({len(names)} hosts)" if len(names) > 1 else ""
    yield console.Hanging.assemble(f"{fold(names)}{number}: ", _way(decision))
    yield console.Hanging(f"  because {printable('; '.join(decision.reasons))}")
    if decision.ends:
        yield console.Hanging(f"  ends {printable(', '.join(decision.ends))}", style="red")
    if decision.steps:
        yield console.Hanging(f"  steps {' → '.join(decision.steps)}")
    if decision.escalation:
        yield console.Hanging(f"  if that fails {', then '.join(decision.escalation)}")


def rebuilds_table(rebuilds: tuple[Rebuild, ...]) -> RenderableType:
    """One line per host, and the sentence of each that is not back."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("host", "outcome", "way", "time", "phases"):
        table.add_column(column, overflow="fold")
    for rebuild in rebuilds:
        phases = "  ".join(f"{name} {shown_seconds(took_s)}" for name, took_s in rebuild.phases)
        outcome = Text(rebuild.outcome, style=STYLES[rebuild.outcome])
        table.add_row(Text(rebuild.host), outcome, rebuild.way, shown_seconds(rebuild.total_s), phases)
    sentences = [
        Text(
            advice.of_host(f"{rebuild.host}: {printable(rebuild.sentence)}", rebuild.host),
            style=STYLES[rebuild.outcome],
        )
        for rebuild in rebuilds
        if rebuild.sentence
    ]
    return Group(table, *sentences)
