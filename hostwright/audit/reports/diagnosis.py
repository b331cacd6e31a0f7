"""What ``invoke doctor`` shows for hosts: what was found, why, and what to do now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.reports.ages import Ages, since
from hostwright.audit.reports.table import SHOWN
from hostwright.common.errors import Finding
from hostwright.common.quoting import sh
from hostwright.common.text import count, printable, short
from hostwright.inventory.patterns import fold


def show_diagnosis(hosts: Iterable[HostAudit], ages: Ages) -> Iterator[RenderableType]:
    """The known failures of hosts, hosts with the same failures together, the gravest first."""
    alike: dict[tuple[object, ...], list[HostAudit]] = {}
    for host in hosts:
        alike.setdefault((host.sentence, host.findings, host.deviations, host.not_checked), []).append(host)
    for group in sorted(alike.values(), key=_gravest):
        yield from _group(group, ages)


def _gravest(group: list[HostAudit]) -> tuple[bool, bool, str]:
    first = group[0]
    return not any(finding.grave for finding in first.findings), not first.findings, first.host


def _group(group: list[HostAudit], ages: Ages) -> Iterator[RenderableType]:
    first, names = group[0], [host.host for host in group]
    title = Text.assemble("\n", (printable(fold(names)), "bold"))
    if first.sentence:
        yield title.append("  could not be read", style="magenta")
        yield Text(f"  {printable(first.sentence)}")
        return
    grave = sum(finding.grave for finding in first.findings)
    summary = f"{count(grave, 'failure')}, {count(len(first.findings) - grave, 'warning')}"
    yield title.append(f"  {summary}" if first.findings else "  no known failure", style="red" if grave else "green")
    for finding in sorted(first.findings, key=lambda finding: not finding.grave):
        yield from _finding(finding, names, ages)
    if first.deviations and not first.findings:
        audit = sh("invoke audit --details --hosts %s", fold(names))
        more = f"  not as desired: {count(len(first.deviations), 'state')}; `{audit}` lists them"
        yield Text(more, style="yellow")
    if first.not_checked:
        rules = ", ".join(dict.fromkeys(skipped.check for skipped in first.not_checked))
        yield Text(f"  not checked: {printable(rules)}", style="dim")
        for reason in dict.fromkeys(skipped.reason for skipped in first.not_checked):
            yield Text(f"    {short(reason)}", style="dim")


def explanation(finding: Finding, indent: str) -> Iterator[Text]:
    """The host's own output as evidence, what went wrong, and what to do now."""
    for line in finding.evidence:
        yield Text(f"{indent}│ {short(line)}", style="dim")
    yield Text(f"{indent}{finding.cause}.")
    yield Text(f"{indent}{finding.cure}.", style="bold")


def _finding(finding: Finding, hosts: list[str], ages: Ages) -> Iterator[Text]:
    sign, _, style = SHOWN["failing" if finding.grave else "warning"]
    lasting = since(ages, hosts, "finding", finding.rule)
    yield (
        Text(f"  {sign} {finding.rule}", style=style)
        .append(f"  {finding.layer}", style="cyan")
        .append(f"  {lasting}" if lasting else "", style="dim")
    )
    yield from explanation(finding, " " * 6)
    provision = sh("`invoke provision --hosts %s`", fold(hosts))
    fixed_by = f"{provision} fixes it" if finding.provision else "provision does not fix it"
    yield Text(f"      {fixed_by}; more in {finding.link}", style="dim")
