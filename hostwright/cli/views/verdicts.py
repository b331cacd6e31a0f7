"""Prints the results of verifying hosts: their layers, and failed checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from hostwright.apply.rollout.rollout import Results, result_of
from hostwright.cli import console
from hostwright.cli.console import Hanging, Listed
from hostwright.cli.views.changing.plans import reads, show_plan
from hostwright.cli.views.shared import (
    errors_json,
    looked_lines,
    print_document,
    show_errors,
    show_next,
    show_next_of_errors,
    show_stand_ins,
    warning_lines,
)
from hostwright.common.command import Command
from hostwright.common.text import count, printable, shown_seconds
from hostwright.fleet import TargetHost
from hostwright.inventory.patterns import fold, headed
from hostwright.plan.roles.layers import one_order
from hostwright.verify.causes import Cause, causes
from hostwright.verify.verdict import Check, Verdict

PASSED, BARE = "passed", "without any layer as desired"


def show_verdicts(
    targets: Sequence[TargetHost],
    results: Results[Verdict],
    *,
    proofs: Mapping[str, Any] | None = None,
    details: bool = False,
    then_proofs: bool = False,
    took_s: float = 0.0,
    as_json: bool,
) -> None:
    """Print the verdict on each host, and the totals. The verification took ``took_s`` seconds.

    ``proofs`` is added to the JSON document. ``then_proofs`` means that the caller prints proofs and the note about
    stand-in files. ``details`` adds all layers of passed hosts, and all changes of hosts without any layer as desired.
    """
    if as_json:
        hosts = [_verdict_json(verdict) for verdict in results.values]
        proved = {"proofs": proofs} if proofs is not None else {}
        print_document("verify", {"hosts": hosts, "errors": errors_json(results.errors), **proved})
        return
    out = console.make_console()
    bare = _bare(targets, results)
    alone = len(results.values) + len(results.errors) == 1
    for group in _alike(results.values, bare, apart=details):
        if group[0].host in bare:
            _show_bare(out, group)
        elif group[0].passed and not (details or alone):
            _show_passed(out, group)
        else:
            _show_verdict(out, group, details=details or (alone and group[0].passed))
    if details:
        for verdict in results.values:
            if verdict.host in bare:
                _show_verdict(out, [verdict], details=True)
    show_errors(results.errors)
    if not then_proofs:
        show_stand_ins(targets, results, out)
    conclude(targets, results, took_s=took_s)


def conclude(
    targets: Sequence[TargetHost],
    results: Results[Verdict],
    what: str = "",
    *,
    unproved: Iterable[str] = (),
    took_s: float = 0.0,
) -> None:
    """Print the number of passed and failed hosts, and recommended commands.

    ``unproved`` are hosts with failed proofs. ``what`` is the text before the totals, such as ``checks of``.
    """
    out, bare = console.make_console(), _bare(targets, results)
    words = Counter(
        [_word(verdict, bare) for verdict in results.values] + [result_of(error) for error in results.errors]
    )
    text = ", ".join(f"{number} {word}" for word, number in sorted(words.items(), key=lambda item: item[0] != PASSED))
    good = words.keys() <= {PASSED}
    sums = f"{what}{count(words.total(), 'host')} in {shown_seconds(took_s)}: {text}"
    out.print(Listed(sums, style="bold green" if good else "bold red"))
    wrong = [verdict for verdict in results.values if not verdict.passed]
    differing = {verdict.host for verdict in wrong if not (verdict.plan.empty or verdict.plan.refusals)} | bare
    # the known problems of a host with an examination are already printed
    failed = [verdict.host for verdict in wrong if verdict.host not in differing and verdict.examination is None]
    failed += [host for host in unproved if host not in differing]
    show_next_of_errors(out, Command("verify"), results.errors, targets, [*dict.fromkeys(failed)])
    if differing:
        show_next(out, Command("provision"), [verdict.host for verdict in wrong if verdict.host in differing], targets)


def _bare(targets: Sequence[TargetHost], results: Results[Verdict]) -> Set[str]:
    return {verdict.host for verdict in results.values if _is_bare(verdict, targets)}


def _word(verdict: Verdict, bare: Set[str]) -> str:
    if verdict.host in bare:
        return BARE
    if verdict.failed_roles:
        return "failed"
    return PASSED if verdict.passed else "not checked in full"


def _is_bare(verdict: Verdict, targets: Sequence[TargetHost]) -> bool:
    layers = {role.role for role in verdict.plan.roles}
    wanted = next(({role.name for role in target.roles} for target in targets if target.name == verdict.host), set())
    return not verdict.host_plan.provisioned and bool(wanted) and wanted <= layers


def _alike(verdicts: Iterable[Verdict], bare: Set[str], *, apart: bool) -> Iterator[list[Verdict]]:
    passed: dict[object, list[Verdict]] = {}
    failed: dict[object, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.host in bare:
            failed.setdefault((len(verdict.plan.changes), len(verdict.plan.roles)), []).append(verdict)
        elif apart:
            (passed if verdict.passed else failed)[verdict.host] = [verdict]
        elif verdict.passed:
            checks = tuple(Counter((check.role, check.no_gpu) for check in verdict.checks).items())
            passed.setdefault((checks, verdict.host_plan.notes, verdict.examination), []).append(verdict)
        else:
            checked = tuple(replace(check, duration_s=0.0) for check in verdict.checks)
            failed.setdefault((checked, verdict.examination, reads(verdict.host_plan)), []).append(verdict)
    yield from (*passed.values(), *failed.values())


def _title(group: Sequence[Verdict]) -> Text:
    return Text(headed(verdict.host for verdict in group)[0], style="bold")


def _show_passed(out: Console, group: Sequence[Verdict]) -> None:
    checks = group[0].checks
    layers = count(len({check.role for check in checks}), "layer")
    seconds = max(verdict.took_s for verdict in group)
    text = f"  passed: {count(sum(check.passed for check in checks), 'check')} in {layers}{_without_gpu(checks)}"
    text += f"  {shown_seconds(seconds)}"
    out.print(_title(group).append(text, style="green"))
    for note in group[0].host_plan.notes:
        out.print(Text(f"  {printable(note)}", style="yellow"))


def _show_bare(out: Console, group: Sequence[Verdict]) -> None:
    text = f"  no layer is as desired: {group[0].plan.tally} (--details shows them)"
    out.print(_title(group).append(text, style="red"))


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


def _show_verdict(out: Console, group: Sequence[Verdict], *, details: bool) -> None:
    verdict, found = group[0], causes(group[0])
    failed = ", ".join(verdict.failed_roles)
    out.print(_title(group).append(f"  failed: {failed}" if failed else "", style="red"))
    if below := headed(each.host for each in group)[1]:
        out.print(Hanging(f"  {below}", style="dim"))
    layers = one_order([[check.role for check in verdict.checks], [role.role for role in verdict.plan.roles]])
    roles = {role: [check for check in verdict.checks if check.role == role] for role in layers}
    passed = [role for role, checks in roles.items() if all(check.passed for check in checks)]
    good = [role for role in passed if role not in verdict.failed_roles]
    explained = {(check.role, check.check) for cause in found for check in cause.checks}
    for role, checks in roles.items():
        if details or role not in good:
            out.print(_told_of_layer(role, checks, verdict))
            open_ = [check for check in checks if not check.holds and (role, check.check) not in explained]
            _show_checks(out, open_, " " * 6, details=details)
    if good and not details:
        number = sum(len(roles[role]) for role in good)
        seconds = sum(check.duration_s for role in good for check in roles[role])
        out.print(_layer_line("✓", "green", ", ".join(good), count(number, "check"), seconds))
    for line in looked_lines(verdict.examination):
        out.print(line)
    for cause in found:
        _show_cause(out, cause, details=details)
    for line in warning_lines(verdict.examination, fold(each.host for each in group)):
        out.print(line)
    if not verdict.plan.empty:
        out.print(show_plan(verdict.host_plan, among=[each.host for each in group], diffs=details))
    else:
        for note in verdict.host_plan.notes:
            out.print(Text(f"  {printable(note)}", style="yellow"))


def _told_of_layer(role: str, checks: Sequence[Check], verdict: Verdict) -> Text:
    unchecked = sum(not (check.checked or check.no_gpu) for check in checks)
    parts = ["differs from the stack"] if role in {each.role for each in verdict.plan.roles} else []
    parts += [f"{sum(check.passed for check in checks)} of {count(len(checks), 'check')} passed"] if checks else []
    parts += [f"{unchecked} not checked"] if unchecked else []
    parts = [", ".join(parts) + _without_gpu(checks)]
    return _layer_line(*_mark(role, verdict), role, ", ".join(parts), sum(check.duration_s for check in checks))


def _without_gpu(checks: Iterable[Check]) -> str:
    without = sum(check.no_gpu for check in checks)
    return f", {without} not run: no GPU" if without else ""


def _show_checks(out: Console, bad: Iterable[Check], indent: str, *, details: bool) -> None:
    alike: dict[tuple[str, bool], list[Check]] = {}
    for check in bad:
        alike.setdefault((check.why, check.checked), []).append(check)
    for (why, checked), checks in alike.items():
        style, remark = ("red", "") if checked else ("yellow", " (not checked)")
        sentences = [check.sentence.splitlines()[0] + remark for check in checks]
        if len(checks) > 1 and not details:
            sentences = [f"{sentences[0]} And {count(len(checks) - 1, 'more check')}:"]
        for sentence in sentences:
            out.print(Hanging(f"{indent}{sentence}", style=style))
        out.print(Hanging(f"{indent}  {printable(why)}", style=style))


def _show_cause(out: Console, cause: Cause, *, details: bool) -> None:
    from hostwright.audit.reports.diagnosis import known_problem

    layers = Counter(check.role for check in cause.checks)
    of_layers = ", ".join(f"{number} of {role}" for role, number in layers.items())
    text = f"{'probably ' if cause.probably else ''}explains {count(layers.total(), 'failed check')}: {of_layers}"
    for line in known_problem(cause.finding, text if layers else ""):
        out.print(line)
    if details:
        _show_checks(out, cause.checks, " " * 6, details=True)
    elif cause.probably:
        for why in dict.fromkeys(check.why for check in cause.checks):
            out.print(Hanging(f"      the checks report: {printable(why)}", style="red"))


def _layer_line(mark: str, style: str, roles: str, text: str, seconds: float) -> Text:
    time = f"  {shown_seconds(seconds)}" if seconds else ""
    return Hanging.assemble("  ", (mark, style), f" {roles}: {text}{time}")


def _mark(role: str, verdict: Verdict) -> tuple[str, str]:
    if role in verdict.failed_roles:
        return "✗", "red"
    if role in verdict.unchecked_roles:
        return "?", "yellow"
    return ("–", "cyan") if any(check.no_gpu for check in verdict.checks if check.role == role) else ("✓", "green")
