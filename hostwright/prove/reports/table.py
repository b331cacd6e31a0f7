"""The results of proofs for a terminal: a table of hosts, the worst first, then findings, figures and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement as Width
from rich.table import Table
from rich.text import Text

from hostwright.common.text import count, printable, short, shown_seconds
from hostwright.inventory.patterns import headed
from hostwright.prove.fleetproof import WORST_FIRST, FleetProof, HostProof, HostStatus
from hostwright.prove.judging import shown
from hostwright.prove.model import CPU, Measurement, Outcome, ProofFinding, ProofResult
from hostwright.stack.store.artifacts import stand_ins_line

#: outcome of a proof → symbol and style
SIGNS: dict[Outcome, tuple[str, str]] = {
    "passed": ("✓", "green"),
    "failed": ("✗ failed", "bold red"),
    "no GPU": ("– no GPU", "cyan"),
    "not run": ("? not run", "magenta"),
}
WORDS: dict[HostStatus, tuple[str, str]] = {
    "failed": ("failed", "bold red"),
    "unread": ("could not be proved", "magenta"),
    "not proved": ("not proved in full", "magenta"),
    "no GPU": ("without a GPU to prove", "cyan"),
    "passed": ("passed", "green"),
}
BAD_FIRST: tuple[Outcome, ...] = ("failed", "not run", "no GPU", "passed")
_UNBOUNDED = 100_000  #: width in columns of an output that must not be wrapped
ABSENT = "·"  #: mark in the table for a proof that a host does not have


def show_proofs(fleet: FleetProof, *, details: bool = False, columns: int | None = None) -> Group:
    """Return the whole report for a terminal that is ``columns`` wide (``None``: unlimited).

    ``details`` adds every figure and its device.
    """
    matrix = _matrix(fleet)
    wide = Width.get(Console(), Console().options.update(width=_UNBOUNDED), matrix).maximum
    parts: list[RenderableType] = [matrix] if columns is None or wide <= columns else [*_by_outcome(fleet)]
    alike: dict[tuple[object, ...], list[HostProof]] = {}
    for host in sorted(fleet.hosts, key=_worst_first):
        details_of_host = tuple(line.plain for line in _about(host))
        alike.setdefault((host.host,) if details else (host.status, details_of_host), []).append(host)
    for same in alike.values():
        parts += _hosts(same)
        parts += _figures(same[0]) if details else ()
    files = dict.fromkeys(name for host in fleet.hosts for name in host.stand_ins)
    parts += [Text(""), *([Text(stand_ins_line(files), style="magenta")] if files else []), _verdict(fleet)]
    return Group(*parts)


def _verdict(fleet: FleetProof) -> Text:
    counts = Counter(host.status for host in fleet.hosts)
    text = Text.assemble(
        (count(len(fleet.hosts), "host"), "bold"), f" in {shown_seconds(fleet.took_s)}, {fleet.level} proofs: "
    )
    for number, status in enumerate(status for status in WORST_FIRST if counts[status]):
        word, style = WORDS[status]
        text.append(", " if number else "").append(f"{counts[status]} {word}", style=style)
    return text


def _matrix(fleet: FleetProof) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    names = list(dict.fromkeys(result.proof for host in fleet.hosts for result in host.results))
    for column in ("hosts", *names):
        table.add_column(column, overflow="fold")
    for label, same in _alike(fleet):
        outcomes = {result.proof: result.outcome for result in same.results}
        table.add_row(label, *(_cell(outcomes.get(name)) for name in names))
    return table


def _by_outcome(fleet: FleetProof) -> Iterator[Text]:
    for label, same in _alike(fleet):
        yield label
        for outcome in BAD_FIRST:
            if names := [result.proof for result in same.results if result.outcome == outcome]:
                sign, style = SIGNS[outcome]
                yield Text.assemble((f"  {sign[0]} {outcome}", style), f"  {', '.join(names)}")


def _alike(fleet: FleetProof) -> Iterator[tuple[Text, HostProof]]:
    rows: dict[tuple[object, ...], list[HostProof]] = {}
    for host in sorted(fleet.hosts, key=_worst_first):
        if host.results:
            outcomes = ((result.proof, result.outcome) for result in host.results)
            rows.setdefault((host.status, *outcomes), []).append(host)
    for same in rows.values():
        yield Text(printable(headed(host.host for host in same)[0]), style="bold"), same[0]


def _worst_first(host: HostProof) -> tuple[int, str]:
    return WORST_FIRST.index(host.status), host.host


def _cell(outcome: Outcome | None) -> Text:
    if outcome is None:
        return Text(ABSENT, style="dim")
    sign, style = SIGNS[outcome]
    return Text(sign, style=style)


def _hosts(same: Sequence[HostProof]) -> Iterator[RenderableType]:
    first = same[0]
    about = [*_about(first)]
    if not about:
        return
    word, style = WORDS[first.status]
    head, below = headed(host.host for host in same)
    yield Text.assemble("\n", (printable(head), f"bold {style}"), (f"  {word}", style))
    if below:
        yield Text(f"  {printable(below)}", style="dim")
    yield from about


def _about(host: HostProof) -> Iterator[Text]:
    if host.sentence:
        yield Text(f"  {printable(host.sentence)}")
    yield from (Text(f"  {short(note)}", style="yellow") for note in host.notes)
    yield from _sentences(host)
    yield from (line for result in host.results for line in _findings(result))


def _sentences(host: HostProof) -> Iterator[Text]:
    alike: dict[tuple[Outcome, str], list[str]] = {}
    for result in host.results:
        if result.outcome != "passed" and result.sentence not in {finding.sentence for finding in result.findings}:
            alike.setdefault((result.outcome, result.sentence), []).append(result.proof)
    for (outcome, sentence), proofs in alike.items():
        sign, style = SIGNS[outcome]
        yield Text.assemble((f"  {sign[0]} ", style), (f"{', '.join(proofs)}  ", "cyan"), printable(sentence))


def _findings(result: ProofResult) -> Iterator[Text]:
    for finding in result.findings:
        mark, colour = ("!", "yellow") if finding.severity == "note" else ("✗", "bold red")
        text = Text.assemble((f"  {mark} ", colour), (f"{result.proof}  ", "cyan"), printable(finding.sentence))
        yield text.append(f"  ({printable(beside(finding))})" if beside(finding) else "", style="dim")


def beside(finding: ProofFinding) -> str:
    """Return those of device, measured value and expected value that the finding's sentence does not contain."""
    parts = [] if finding.device.startswith(CPU) else [f"on {finding.device}"]
    parts += [f"measured {finding.measured}", f"expected {finding.expected}"]
    return ", ".join(each for each in parts if each.partition(" ")[2] not in finding.sentence)


def _figures(host: HostProof) -> Iterable[RenderableType]:
    results = [result for result in host.results if result.measurements]
    if not results:
        return ()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("proof", "figure", "value", "device"):
        table.add_column(column, overflow="fold", justify="right" if column == "value" else "left")
    for result in results:
        for number, one in enumerate(result.measurements):
            name = result.proof if number == 0 else ""
            table.add_row(Text(name, style="cyan"), Text(printable(one.name)), figure(one), Text(printable(one.device)))
    return Text.assemble("\n", (printable(host.host), "bold"), "  measurements"), table


def figure(one: Measurement) -> Text:
    """Return the value of a measurement as text; ``no GPU`` if the host lacks the GPU that the measurement needs."""
    if one.value is None:
        return Text(one.device, style="cyan")
    if isinstance(one.value, bool):
        return Text("yes" if one.value else "no")
    return Text(printable(one.value) if isinstance(one.value, str) else printable(shown(one.value, one.unit)))
