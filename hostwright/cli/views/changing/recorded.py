"""Prints a short form of a recorded run: equal results together, failures in full, all else in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from hostwright.apply.journal.reading import RunSummary
from hostwright.apply.journal.runs import HostRun, RecordedRun, RoleRun
from hostwright.cli.console import Hanging
from hostwright.cli.views.runs import BAD, lasting, result_style, show_head, step_line
from hostwright.cli.views.shared import show_command
from hostwright.common.command import Command
from hostwright.common.text import count, printable
from hostwright.inventory.patterns import headed

MOST_LINES = 5  #: maximum number of printed output lines of a failed step
MOST_CHECKS = 3  #: maximum number of printed checks that failed for an unknown cause


def show_in_short(out: Console, summary: RunSummary, run: RecordedRun) -> None:
    """Print a short form of ``run``: its summary, its hosts, and the command that shows every step."""
    show_head(out, summary, run, details=False)
    for line in _hosts(run.hosts):
        out.print(line)
    show_command(out, "every step", Command("runs.show", run=summary.run, details=True))


def _hosts(hosts: Iterable[HostRun]) -> Iterator[Text]:
    alike: dict[object, list[HostRun]] = {}
    for host in sorted(hosts, key=lambda host: host.result in BAD):
        alike.setdefault(_happened(host), []).append(host)
    for same in alike.values():
        first = same[0]
        head, below = headed(host.host for host in same)
        title = Hanging.assemble((printable(head), "bold"), "  ", (printable(first.result), result_style(first.result)))
        yield title.append(f"  {printable(first.sentence)}" if first.sentence else "")
        if below:
            yield Hanging(f"  {printable(below)}", style="dim")
        yield from _layers(same)
        yield from _explained(first)


def _happened(host_run: HostRun) -> object:
    failed = [(role.role, role.status, [(step.what, step.output) for step in _bad(role)]) for role in host_run.roles]
    return host_run.result, host_run.sentence, repr(failed), repr([*_causes(host_run)]), repr([*_unexplained(host_run)])


def _bad(role: RoleRun) -> list[Any]:
    return [step for step in role.steps if step.status != 0]


def _layers(same: Sequence[HostRun]) -> Iterator[Text]:
    good: dict[str, list[RoleRun]] = {}
    for role in (role for host in same for role in host.roles if role.status == 0 and role.steps):
        good.setdefault(role.role, []).append(role)
    if good:
        parts = [
            f"{printable(name)} {count(max(len(role.steps) for role in roles), 'step')} in "
            f"{lasting(max(role.duration_s for role in roles))}"
            for name, roles in good.items()
        ]
        yield Hanging(f"  {', '.join(parts)}")
    for role in (role for role in same[0].roles if role.status != 0):
        how = "no end recorded" if role.status is None else f"failed with status {role.status}"
        yield Hanging(f"  {printable(role.role)}: {how}, {lasting(role.duration_s)}", style="red")
        for step in _bad(role):
            yield step_line(step)
            lines = step.output.splitlines()[-MOST_LINES:]
            yield from (Hanging(f"        │ {printable(line)}", style="dim") for line in lines)


def _explained(host_run: HostRun) -> Iterator[Text]:
    for rule, cause in dict(_causes(host_run)).items():
        yield Hanging(f"  {printable(cause)} ({printable(rule)})")
    checks = [*_unexplained(host_run)]
    yield from (Hanging(f"  {printable(check)}") for check in checks[:MOST_CHECKS])
    if len(checks) > MOST_CHECKS:
        yield Hanging(f"  and {count(len(checks) - MOST_CHECKS, 'more failed check')}", style="dim")


def _causes(host_run: HostRun) -> Iterator[tuple[str, str]]:
    for finding in (finding for record in host_run.said for finding in _findings(record)):
        match finding:
            case {"rule": str(rule), "cause": str(cause), "cure": str(cure)}:
                yield rule, f"{cause}. {cure}"


def _unexplained(host_run: HostRun) -> Iterator[str]:
    for record in host_run.said:
        if record["kind"] == "explained" and not _findings(record):
            yield f"{record.get('what', '')}: {record.get('why', '')}"


def _findings(record: Mapping[str, Any]) -> list[Any]:
    findings = record.get("findings") if record["kind"] == "explained" else None
    return findings if isinstance(findings, list) else []
