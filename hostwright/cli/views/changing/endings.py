"""How a run that changed hosts ended: a line for hosts to which the same happened, and each layer once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hostwright.apply.events import SHOWN_RESULTS
from hostwright.apply.rollout.rollout import result_of
from hostwright.cli.console import Hanging
from hostwright.common.errors import Acceptance, HostError
from hostwright.common.text import count, shown_seconds
from hostwright.inventory.patterns import counted, headed
from hostwright.plan.roles.layers import one_order

if TYPE_CHECKING:
    from hostwright.apply.host.outcome import Outcome


def summary(
    outcomes: Iterable[Outcome],
    errors: Iterable[HostError],
    untouched: Sequence[str] = (),
    *,
    proved: bool = False,
    shown: Mapping[str, str] = SHOWN_RESULTS,
) -> Group:
    """What came of hosts, those to which the same happened in one line, the bad ones last; then each layer once.

    Of hosts that are many, only the number: those that matter are named by the errors, or by the next command.
    ``proved``: proofs were asked for, and are counted. ``shown``: the words for results.
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
        add(outcome.host, _result(outcome, shown), outcome.acceptance)
    if untouched:
        alike["untouched", "yellow", ("", "")] = [*untouched]
    for error in errors:
        result = result_of(error)
        style = "yellow" if result == "locked" else "red"
        add(error.host, Text(f"{result}, see below", style=style), error.acceptance)
    for (word, colour, proofs), hosts in alike.items():
        names = counted(hosts) if word == "untouched" else headed(hosts)[0]
        table.add_row(Hanging(names), Text(word, style=colour), *([Text(*proofs)] if proved else []))
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
        if not steps:
            continue  # nothing was done but to look again
        table.add_row(name, *([f"{len(times)}"] if several else []), f"{steps}", shown_seconds(max(times)))
    return table


def _proofs(acceptance: Iterable[Acceptance]) -> Text:
    """How many proofs came to which end: ``1 failed, 3 passed``; the sentence of a failed one is the host's error."""
    number = Counter(one.outcome for one in acceptance)
    if not number:
        return Text("not proved", style="yellow")
    good = number.keys() <= {"passed", "no GPU"}
    return Text(", ".join(f"{number[word]} {word}" for word in sorted(number)), style="green" if good else "red")


def _result(outcome: Outcome, shown: Mapping[str, str]) -> Text:
    if outcome.left is not None and not outcome.left.empty:
        return Text(f"{shown[outcome.word]}, {outcome.left.tally} left to make", style="yellow")
    if not outcome.changed:
        return Text("as desired, nothing done", style="green")
    steps = count(sum(len(result.steps) for result in outcome.results), "step")
    reboots = f", {count(outcome.reboots, 'reboot')}" if outcome.reboots else ""
    return Text(f"{shown[outcome.word]}, {steps}{reboots}", style="green")
