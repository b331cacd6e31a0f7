"""The output of ``hostwright doctor``: known problems of hosts, with evidence, causes and fixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from hostwright.audit.failures.treatment import ForPeople, Treatment
from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.reports.ages import Ages, since
from hostwright.audit.reports.table import SHOWN, joined, names_below
from hostwright.common.command import Command
from hostwright.common.errors import Finding, led
from hostwright.common.text import count, printable, short
from hostwright.inventory.patterns import headed
from hostwright.resources.files.paths import few

MOST_CHANGED = 12  #: maximum number of changed files and packages to list (our choice)

#: label and style of each kind of host in the final count, worst kind first
WORDS = {
    "failing": ("failing", "bold red"),
    "unread": ("could not be read", "magenta"),
    "warning": ("with warnings", "yellow"),
    "well": ("without known problems", "green"),
}


def show_diagnosis(hosts: Sequence[HostAudit], ages: Ages) -> Iterator[RenderableType]:
    """Yield the known problems of ``hosts``, equal hosts together and the worst hosts last, and a final count."""
    alike: dict[tuple[object, ...], list[HostAudit]] = {}
    for host in hosts:
        alike.setdefault((host.sentence, host.findings, host.deviations, host.not_checked), []).append(host)
    for group in sorted(alike.values(), key=lambda group: (-[*WORDS].index(word_of(group[0])), group[0].host)):
        yield from _group(group, ages)
        yield Text("")
    counts = Counter(map(word_of, hosts))
    text = joined((f"{counts[word]} {words}", style) for word, (words, style) in WORDS.items() if counts[word])
    yield Text.assemble((count(len(hosts), "host"), "bold"), ": ", text)


def word_of(host: HostAudit) -> str:
    """Return the key in ``WORDS`` for the result of ``host``. Hosts are counted and sorted by this key."""
    if host.sentence:
        return "unread"
    if any(finding.grave for finding in host.findings):
        return "failing"
    return "warning" if host.findings else "well"


def next_commands(hosts: Iterable[HostAudit], treatments: Mapping[str, Treatment]) -> Mapping[Command, Sequence[str]]:
    """Return the commands to run after a diagnosis, each with its hosts.

    A host with failures that provisioning does not fix needs a rebuild, unless ``treatments`` has ``ForPeople`` for all
    these failures. For a host that could not be read, the error names the command.
    """
    found: dict[Command, list[str]] = {}
    for host in hosts:
        if host.sentence:
            if then := led(host.lead, Command("doctor")):
                found.setdefault(then, []).append(host.host)
        elif left := [finding for finding in host.findings if finding.grave and not provisioned(finding, host)]:
            if any(not isinstance(treatments.get(finding.rule), ForPeople) for finding in left):
                found.setdefault(Command("rebuild", check=True), []).append(host.host)
        elif host.deviations:
            found.setdefault(Command("plan"), []).append(host.host)
    return found


def provisioned(finding: Finding, host: HostAudit) -> bool:
    """Return whether provisioning fixes the failure on this host. Return ``False`` if the host is already
    as desired.
    """
    return finding.provision and bool(host.deviations)


def _group(group: list[HostAudit], ages: Ages) -> Iterator[RenderableType]:
    first, names = group[0], [host.host for host in group]
    head, below = headed(names)
    title = Text.assemble((printable(head), "bold"))
    if first.sentence:
        yield title.append("  could not be read", style="magenta")
        yield from names_below(below)
        yield Text(f"  {printable(first.sentence)}")
        return
    grave = sum(finding.grave for finding in first.findings)
    numbers = {"failure": grave, "warning": len(first.findings) - grave}
    summary = ", ".join(count(number, noun) for noun, number in numbers.items() if number)
    style = "red" if grave else "yellow" if first.findings else "green"
    yield title.append(f"  {summary or 'no known problem'}", style=style)
    if first.findings or first.deviations or first.not_checked:
        yield from names_below(below)
    hindered = any(finding.grave and not finding.provision for finding in first.findings)
    for finding in sorted(first.findings, key=lambda finding: not finding.grave):
        remark, fixed = since(ages, names, "finding", finding.rule), provisioned(finding, first)
        yield from known_problem(finding, remark, fixed=fixed, hindered=hindered)
    if first.deviations:
        layers = Counter(state.layer for state in first.deviations)
        text = ", ".join(f"{number} of {printable(layer)}" for layer, number in layers.items())
        yield Text(f"  not as desired: {count(len(first.deviations), 'state')}: {text}", style="yellow")
    if changed := [what for what in first.changed if all(what in host.changed for host in group)]:
        yield Text(f"  changed since it was provisioned: {few(changed, MOST_CHANGED)}", style="dim")
    if first.not_checked:
        rules = ", ".join(dict.fromkeys(skipped.check for skipped in first.not_checked))
        yield Text(f"  not checked: {printable(rules)}", style="dim")
        for reason in dict.fromkeys(skipped.reason for skipped in first.not_checked):
            yield Text(f"    {short(reason)}", style="dim")


def explanation(finding: Finding, indent: str) -> Iterator[Text]:
    """Yield the evidence, cause and fix of a known problem as lines, each indented by ``indent``."""
    for line in finding.evidence:
        yield Text(f"{indent}│ {short(line)}", style="dim")
    yield Text(f"{indent}{finding.cause}.")
    yield Text(f"{indent}{finding.cure}.", style="bold")


def known_problem(
    finding: Finding, remark: str = "", *, fixed: bool | None = None, hindered: bool = False
) -> Iterator[Text]:
    """Yield the lines about a known problem: rule and layer with a ``remark``, evidence, cause and fix.

    ``fixed`` is whether provisioning fixes the problem, ``None`` if unknown. ``hindered`` is whether another failure
    has to be fixed first.
    """
    sign, _, style = SHOWN["failing" if finding.grave else "warning"]
    parts = [(finding.layer, "cyan"), (remark, "dim")]
    yield Text.assemble((f"  {sign} {finding.rule}", style), *((f"  {part}", style) for part, style in parts if part))
    yield from explanation(finding, " " * 6)
    fixed_by = ""
    if fixed is not None:
        fixed_by = "provisioning fixes it; " if fixed else "provisioning does not fix it; "
    if fixed and hindered:
        fixed_by = "provisioning fixes it once the other failures are fixed; "
    if finding.provision and fixed is False:
        fixed_by = "provisioning does not fix it: every state is as desired; "
    yield Text(f"      {fixed_by}more: {finding.link}", style="dim")
