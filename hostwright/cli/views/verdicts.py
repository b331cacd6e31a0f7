"""Hosts that were verified: their layers, and every check that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from hostwright.apply.rollout.rollout import Results, result_of
from hostwright.cli import console
from hostwright.cli.views.shared import (
    errors_json,
    examination_lines,
    finding_lines,
    print_document,
    show_errors,
    show_next,
    show_next_of_bad,
    show_stand_ins,
)
from hostwright.common.text import count, printable, shown_seconds
from hostwright.fleet import Member
from hostwright.inventory.patterns import fold
from hostwright.verify.verdict import Check, Verdict

PASSED, BARE = "passed", "without any layer as desired"


def show_verdicts(
    members: Sequence[Member],
    results: Results[Verdict],
    *,
    proofs: Mapping[str, Any] | None = None,
    details: bool = False,
    then_proofs: bool = False,
    as_json: bool,
) -> None:
    """What came of each host, the last lines of all; ``proofs`` are a part of the document where hosts were proved as
    well, and ``then_proofs`` says that those are shown next, with the files that are stand-ins.
    ``details``: each layer of hosts that passed, and each change of hosts on which no layer is as desired."""
    if as_json:
        hosts = [_verdict_json(verdict) for verdict in results.values]
        proved = {"proofs": proofs} if proofs is not None else {}
        print_document("verify", {"hosts": hosts, "errors": errors_json(results.errors), **proved})
        return
    out = console.make_console()
    bare = {verdict.host for verdict in results.values if _is_bare(verdict, members)}
    for group in _alike(results.values, bare):
        if group[0].host in bare:
            _show_bare(out, group)
        elif group[0].passed and not details and len(results.values) + len(results.errors) > 1:
            _show_passed(out, group)
        else:
            for verdict in group:
                _show_verdict(out, verdict)
    if details:
        for verdict in results.values:
            if verdict.host in bare:
                _show_verdict(out, verdict)
    show_errors(results.errors)
    if not then_proofs:
        show_stand_ins(members, results, out)
    _conclude(out, members, results, bare)


def _conclude(out: Console, members: Sequence[Member], results: Results[Verdict], bare: Set[str]) -> None:
    """How many hosts passed and did not, and what is next for those."""
    words = Counter(
        [_word(verdict, bare) for verdict in results.values] + [result_of(error) for error in results.errors]
    )
    told = ", ".join(f"{number} {word}" for word, number in sorted(words.items(), key=lambda item: item[0] != PASSED))
    good = words.keys() <= {PASSED}
    out.print(Text(f"{count(words.total(), 'host')}: {told}", style="bold green" if good else "bold red"))
    failed = [verdict.host for verdict in results.values if not verdict.passed and verdict.host not in bare]
    show_next_of_bad(out, failed, results.errors, members)
    if bare:
        show_next(out, "provision", [verdict.host for verdict in results.values if verdict.host in bare], members)


def _word(verdict: Verdict, bare: Set[str]) -> str:
    if verdict.host in bare:
        return BARE
    if verdict.failed_roles:
        return "failed"
    return PASSED if verdict.passed else "not checked in full"


def _is_bare(verdict: Verdict, members: Sequence[Member]) -> bool:
    """Whether something differs in every layer of a host that nobody has provisioned: all of it is no news."""
    layers = {role.role for role in verdict.plan.roles}
    wanted = next(({role.name for role in member.roles} for member in members if member.name == verdict.host), set())
    return not verdict.host_plan.provisioned and bool(wanted) and wanted <= layers


def _alike(verdicts: Iterable[Verdict], bare: Set[str]) -> Iterator[list[Verdict]]:
    """The hosts that passed, those that passed the same checks together, then the others."""
    passed: dict[tuple[object, ...], list[Verdict]] = {}
    failed: dict[object, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.passed:
            checks = tuple(Counter(check.role for check in verdict.checks).items())
            passed.setdefault((checks, verdict.host_plan.notes, verdict.examination), []).append(verdict)
        elif verdict.host in bare:
            failed.setdefault((len(verdict.plan.changes), len(verdict.plan.roles)), []).append(verdict)
        else:
            failed[verdict.host] = [verdict]
    yield from (*passed.values(), *failed.values())


def _title(group: Sequence[Verdict]) -> Text:
    hosts = f" ({len(group)} hosts)" if len(group) > 1 else ""
    return Text(fold(verdict.host for verdict in group) + hosts, style="bold")


def _show_passed(out: Console, group: Sequence[Verdict]) -> None:
    checks = group[0].checks
    layers = count(len({check.role for check in checks}), "layer")
    seconds = max(verdict.took_s for verdict in group)
    told = f"  passed: {count(len(checks), 'check')} in {layers}  {shown_seconds(seconds)}"
    out.print(_title(group).append(told, style="green"))
    for note in group[0].host_plan.notes:
        out.print(Text(f"  {printable(note)}", style="yellow"))


def _show_bare(out: Console, group: Sequence[Verdict]) -> None:
    changes = count(len(group[0].plan.changes), "change")
    out.print(_title(group).append(f"  no layer is as desired: {changes} (--details shows them)", style="red"))


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    return {
        "host": verdict.host,
        "passed": verdict.passed,
        "failed_roles": verdict.failed_roles,
        "unchecked_roles": verdict.unchecked_roles,
        "plan": verdict.host_plan.to_json(),
        "checks": [asdict(check) for check in verdict.checks],
        "examination": asdict(verdict.examination) if verdict.examination else None,
    }


def _show_verdict(out: Console, verdict: Verdict) -> None:
    out.print(Text(verdict.host, style="bold"))
    roles: dict[str, list[Check]] = {}
    for check in verdict.checks:
        roles.setdefault(check.role, []).append(check)
    for role, checks in roles.items():
        bad = [check for check in checks if not check.passed]
        unchecked = sum(not check.checked for check in checks)
        seconds = sum(check.duration_s for check in checks)
        good = f"{len(checks) - len(bad)} of {count(len(checks), 'check')}"
        good += f", {unchecked} not checked" if unchecked else ""
        out.print(Text.assemble("  ", _mark(role, verdict), f" {role}: {good}  {shown_seconds(seconds)}"))
        for check in bad:
            sentence = check.sentence.splitlines()[0] + ("" if check.checked else " (not checked)")
            style = "red" if check.checked else "yellow"
            out.print(Text(f"      {sentence}\n        {printable(check.why)}", style=style))
            for line in finding_lines(check.finding, " " * 8) if check.finding else ():
                out.print(line)
    for line in examination_lines(verdict.examination, verdict.host):
        out.print(line)
    if not verdict.plan.empty:
        out.print(console.show_plan(verdict.host_plan))
    else:
        for note in verdict.host_plan.notes:
            out.print(Text(f"  {printable(note)}", style="yellow"))


def _mark(role: str, verdict: Verdict) -> Text:
    if role in verdict.failed_roles:
        return Text("✗", style="red")
    return Text("?", style="yellow") if role in verdict.unchecked_roles else Text("✓", style="green")
