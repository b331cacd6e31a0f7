"""Hosts that were verified: their layers, and every check that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from hostwright.apply.rollout.rollout import Results
from hostwright.cli import console
from hostwright.cli.views.shared import (
    errors_json,
    examination_lines,
    finding_lines,
    print_document,
    show_errors,
    show_stand_ins,
)
from hostwright.common.text import count, printable
from hostwright.fleet import Member
from hostwright.verify.verdict import Check, Verdict


def show_verdicts(
    members: Sequence[Member], results: Results[Verdict], *, proofs: Mapping[str, Any] | None = None, as_json: bool
) -> None:
    """What came of each host; ``proofs`` are a part of the document where hosts were proved as well."""
    if as_json:
        hosts = [_verdict_json(verdict) for verdict in results.values]
        proved = {"proofs": proofs} if proofs is not None else {}
        print_document("verify", {"hosts": hosts, "errors": errors_json(results.errors), **proved})
        return
    out = console.make_console()
    for verdict in results.values:
        _show_verdict(out, verdict)
    show_errors(results.errors)
    show_stand_ins(members, out)


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
        out.print(Text.assemble("  ", _mark(role, verdict), f" {role}: {good}  {seconds:.1f} s"))
        for check in bad:
            sentence = check.sentence.splitlines()[0] + ("" if check.checked else " (not checked)")
            style = "red" if check.checked else "yellow"
            out.print(Text(f"      {sentence}\n        {printable(check.why)}", style=style))
            for line in finding_lines(check.finding, " " * 8) if check.finding else ():
                out.print(line)
    for line in examination_lines(verdict.examination):
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
