"""Prints plans and results of changing runs, as text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hostwright.apply.delivery.sources.settings import ARTIFACTS, DIRECT
from hostwright.apply.events import RESULTS, SHOWN_RESULTS
from hostwright.apply.rollout.rollout import result_of
from hostwright.cli import console
from hostwright.cli.console import Hanging, Listed
from hostwright.cli.views.changing.plans import folded_plans
from hostwright.cli.views.shared import (
    errors_json,
    print_document,
    proofs_json,
    show_command,
    show_errors,
    show_next,
    show_next_of_errors,
    show_stand_ins,
    style_of_ends,
    warn,
)
from hostwright.common.command import Command
from hostwright.common.errors import FAILED, Acceptance, HostError, Locked
from hostwright.common.text import count, local_time, printable, shown_bytes, shown_seconds
from hostwright.inventory.patterns import counted, fold, headed
from hostwright.plan.model import tally
from hostwright.plan.planning import PREFLIGHT
from hostwright.plan.roles.layers import one_order

if TYPE_CHECKING:
    from hostwright.apply.host.outcome import Outcome
    from hostwright.apply.rollout.rollback import WayBack
    from hostwright.apply.rollout.rollout import Results
    from hostwright.apply.run import RunResults
    from hostwright.fleet import TargetHost
    from hostwright.plan.model import Plan
    from hostwright.plan.planning import HostPlan
    from hostwright.stack.stack import Artifact
    from hostwright.stack.store.artifacts import Store

GOOD = frozenset({"as desired", "changed"})
ALL_OR_NONE = "nothing was changed: either all of these hosts go back, or none"
#: verbs that an operator calls again after a reboot to continue
SAME_AGAIN = ("provision", "remove", "rollback")


def show_plans(
    targets: Sequence[TargetHost],
    results: Results[HostPlan],
    *,
    brief: bool = False,
    then: Command | None = None,
    saved: str = "",
    store: Store | None = None,
    as_json: bool,
) -> None:
    """Print the plans, which show how hosts differ from the desired state. Equal plans are printed once.

    The last lines are the totals and the command ``then``, which applies the plans. ``store`` has the files to send to
    hosts, and thus their sizes.
    """
    if as_json:
        plans = [plan.to_json() for plan in results.values]
        print_document("plan", {"plans": plans, "errors": errors_json(results.errors)})
        return
    out = console.make_console()
    for shown in folded_plans(results.values, brief=brief):
        out.print(shown)
    show_errors(results.errors)
    show_stand_ins(targets, results, out)
    out.print(Listed(_altogether(targets, results, store), style="bold"))
    todo = [planned.host for planned in results.values if not (planned.plan.empty or planned.plan.refusals)]
    if then and todo:
        busy = any(planned.busy for planned in results.values)
        done = [planned.host for planned in results.values if planned.plan.empty]
        show_next(out, then.also(drain=busy, plan=saved), todo, targets, done=done)
    again = Command("plan") if then is None or then.verb == "provision" else then.also(check=True)
    show_next_of_errors(out, again, results.errors, targets)


def _altogether(targets: Sequence[TargetHost], results: Results[HostPlan], store: Store | None) -> str:
    plans = [planned.plan for planned in results.values if not planned.plan.empty]
    of_host = {target.name: target for target in targets}
    head = count(len(results.values) + len(results.errors), "host")
    parts = []
    if same := len(results.values) - len(plans):
        parts.append(f"{same} as desired" if plans or results.errors else "as desired, nothing to do")
    if plans:
        layers = {role.role for plan in plans for role in plan.roles} - {PREFLIGHT}
        making = [plan for plan in plans if any(planned.kind != "refusal" for planned in plan.changes)]
        every = [planned for plan in making for planned in plan.changes if planned.kind != "refusal"]
        changes = f"{tally((each.kind, each.want) for each in every)} in {count(len(layers), 'layer')}"
        if len(making) < len(results.values) or results.errors:
            changes = f"{len(making)} with {changes}"
        reboots = sum(bool(plan.reboot) for plan in plans)
        parts += [changes] if making else []
        parts += [f"{count(reboots, 'host')} to reboot" if reboots else "no reboot"] if making else []
        if to_send := _to_send([(of_host[plan.host], plan) for plan in plans if plan.host in of_host], store):
            parts.append(to_send)
        if busy := sum(bool(planned.busy) for planned in results.values):
            parts.append(f"{busy} in use")
        if refused := sum(bool(plan.refusals) for plan in plans):
            parts.append(f"{refused} refused")
        if lost := dict.fromkeys(what for planned in results.values for what in planned.losses):
            parts.append(f"{printable(' and '.join(lost))} deleted permanently")
    if results.errors:
        parts.append(f"{len(results.errors)} not planned, see above")
    return f"{head}: {', '.join(parts)}"


def _to_send(plans: Iterable[tuple[TargetHost, Plan]], store: Store | None) -> str:
    files = [artifact for target, plan in plans for artifact in _sent(target, plan)]
    sizes = [store.size_of(artifact) if store else artifact.size or 0 for artifact in files]
    unknown = len({artifact.file for artifact, size in zip(files, sizes, strict=True) if not size})
    known = [f"up to {shown_bytes(sum(sizes))}"] if sum(sizes) else []
    words = " and ".join((*known, *([f"{count(unknown, 'file')} of unknown size"] if unknown else [])))
    return f"{words} to send" if words else ""


def _sent(target: TargetHost, plan: Plan) -> list[Artifact]:
    artifacts, direct = target.desired.stack.artifacts, target.host.get(ARTIFACTS) == DIRECT
    wanted = [artifacts[name] for name in plan.artifacts if name in artifacts]
    return [artifact for artifact in wanted if not (direct and artifact.urls)]


def show_outcomes(
    verb: str,
    targets: Sequence[TargetHost],
    ended: RunResults[Outcome],
    *,
    proved: bool = False,
    took_s: float = 0.0,
    as_json: bool,
) -> None:
    """Print the result of ``verb`` for each host. The run took ``took_s`` seconds. With ``proved``, include results of
    proofs.
    """
    from hostwright.apply.run import again

    run, results = ended.run, ended.results
    if as_json:
        print_document("provision", _document(run, results, proved=proved))
        return
    out = console.make_console()
    shown = SHOWN_RESULTS | ({"changed": "layers removed"} if verb == "remove" else {})
    out.print(summary(results.values, results.errors, results.untouched, proved=proved, shown=shown))
    show_errors(results.errors)
    # a stop after the last host's work leaves nothing to continue
    if results.stopped_because and (results.untouched or results.errors):
        sentence = f"{results.stopped_because}. To continue with the remaining hosts: {again(verb, run)}"
        console.make_console(stderr=True).print(Text(printable(sentence), style="bold red"))
    show_stand_ins(targets, results, out)
    words = Counter(
        [outcome.word for outcome in results.values]
        + [result_of(error) for error in results.errors]
        + ["untouched"] * len(results.untouched)
    )
    of_hosts = shown | ({"changed": "with layers removed"} if verb == "remove" else {})
    sums = ", ".join(f"{words[word]} {of_hosts[word]}" for word in RESULTS if words[word])
    style = style_of_ends(words, GOOD)
    out.print(Listed(f"{count(words.total(), 'host')} in {shown_seconds(took_s)}: {sums}", style=style))
    if run:
        show_command(out, "every step", Command("runs.show", run=run, details=True))
    show_next_of_errors(out, Command(verb), results.errors, targets)
    if all(isinstance(error, Locked) for error in results.errors) and verb in SAME_AGAIN and results.values:
        pending = [outcome.host for outcome in results.values if outcome.word == "pending"]
        if pending:
            show_next(out, Command(verb), pending, targets)
        elif verb == "provision":
            show_next(out, Command("verify"), [each.host for each in results.values], targets)


def _document(run: str, results: Results[Outcome], *, proved: bool) -> dict[str, Any]:
    return {
        "run": run,
        "hosts": [
            {
                "host": outcome.host,
                "result": outcome.word,
                "changed": outcome.changed,
                "reboots": outcome.reboots,
                "plan": outcome.plan.to_json(),
                "left": outcome.left.to_json() if outcome.left else None,
                "roles": [asdict(result) for result in outcome.results],
                **({"proofs": proofs_json(outcome.acceptance)} if proved else {}),
            }
            for outcome in results.values
        ],
        "errors": errors_json(results.errors, proved=proved),
        "untouched": list(results.untouched),
        "stopped_because": results.stopped_because,
    }


def show_no_way_back(ways: Results[WayBack], targets: Sequence[TargetHost], to: str, *, as_json: bool) -> int:
    """Print which hosts cannot be rolled back, so that no host is rolled back. Return the exit status.

    ``to`` is the requested release.
    """
    if as_json:
        left = {"untouched": list(ways.names), "stopped_because": ALL_OR_NONE}
        print_document("provision", {"run": None, "hosts": [], "errors": errors_json(ways.errors), **left})
    show_errors(ways.errors)
    warn(ALL_OR_NONE)
    if (able := [way.now.name for way in ways.values]) and not as_json:
        show_next(console.make_console(), Command("rollback", to=to), able, targets)
    return FAILED


def intents(ways: Sequence[WayBack]) -> Iterator[str]:
    """Yield a sentence per group of hosts that a rollback returns to the same stack: the stack, hosts, and effects."""
    kinds = dict.fromkeys((way.back.stack.name, way.now.stack.name, way.back.stack.digest()) for way in ways)
    for back, now, digest in kinds:
        same = [way for way in ways if (way.now.stack.name, way.back.stack.digest()) == (now, digest)]
        verified: dict[str, list[str]] = {}
        for way in same:
            verified.setdefault(local_time(way.at), []).append(way.now.name)
        names = ", ".join(f"{fold(hosts)} (verified {when})" for when, hosts in verified.items())
        yield f"back to {back}: {names}. {_afterwards(same[0])}"


def _afterwards(way: WayBack) -> str:
    back, now = way.back.stack, way.now.stack
    if back.digest() == now.digest():
        return "The inventory names the same stack"
    says = "has a newer version of that stack" if back.name == now.name else f"names {now.name}"
    return (
        f"The inventory still {says}: audits report these hosts as different (intent), and the next provision installs "
        "that stack again, unless you change the inventory"
    )


def summary(
    outcomes: Iterable[Outcome],
    errors: Iterable[HostError],
    untouched: Sequence[str] = (),
    *,
    proved: bool = False,
    shown: Mapping[str, str] = SHOWN_RESULTS,
) -> Group:
    """Return the results of a run: a line per group of hosts with equal results, failures last, and a line per layer.

    With ``proved``, proofs are counted, too. ``shown`` maps results to printed words.
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
    table = Table(box=None, pad_edge=False, header_style="dim")
    several = len(outcomes) > 1
    for column in ("layer", *(["hosts"] if several else []), "steps", "longest" if several else "time"):
        table.add_column(column, justify="left" if column == "layer" else "right")
    for name in one_order([result.role for result in outcome.results] for outcome in outcomes):
        of_hosts = [[result for result in outcome.results if result.role == name] for outcome in outcomes]
        times = [sum(result.duration_s for result in results) for results in of_hosts if results]
        steps = sum(len(result.steps) for results in of_hosts for result in results)
        if not steps:
            continue
        table.add_row(name, *([f"{len(times)}"] if several else []), f"{steps}", shown_seconds(max(times)))
    return table


def _proofs(acceptance: Iterable[Acceptance]) -> Text:
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
