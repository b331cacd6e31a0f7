"""The matrix of hosts and layers on the HTML page, the worst hosts first.

Equal hosts that are as desired share one row. All functions are pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hostwright.audit.failures.document import how_seen
from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.fleetaudit import WORST_FIRST, FleetAudit, HostAudit, LayerStatus, have_several_stacks
from hostwright.audit.reports.ages import Ages
from hostwright.audit.reports.html.commands import locked
from hostwright.audit.reports.html.text import clean, first, folded, line, name
from hostwright.audit.reports.table import ABSENT, SHOWN, WORDS
from hostwright.common.errors import Finding

#: minimum number of equal hosts that share one row
FOLD_FROM = 3
CHIPS = 12  #: maximum number of known failures with a button that filters hosts
FAILURES = 60  #: maximum number of known failures that get a section each
OPENABLE = 40  #: maximum number of hosts to list in the section of a failure
STATUSES = tuple(status for status in WORST_FIRST if status != "warning")
NOT_THERE = "not on this host"  #: label of a layer that only other hosts have
CellStatus = LayerStatus | Literal["absent"]
_NUMBER = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Cell:
    """The status of one layer of a host, as a cell of the matrix."""

    layer: str
    status: CellStatus
    sign: str
    word: str


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A row of the matrix for one host.

    ``index`` is the host's index in the page's data. ``fold`` is the number of the ``FoldedRow`` that contains the row,
    or 0.
    """

    index: int
    host: str
    status: LayerStatus
    cells: tuple[Cell, ...]
    stack: str
    what: str
    since: str
    locked: bool
    fold: int = 0


@dataclass(frozen=True, slots=True)
class FoldedRow:
    """A row for several equal hosts; ``rows`` are the single rows that appear when a user unfolds the row."""

    number: int
    hosts: str
    status: LayerStatus
    cells: tuple[Cell, ...]
    rows: tuple[MatrixRow, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile with the number of hosts that have a status; ``share`` is the percentage of all hosts."""

    status: LayerStatus
    sign: str
    words: str
    hosts: int
    start: float
    share: float
    remark: str = ""


def worst_first(hosts: Iterable[HostAudit]) -> list[HostAudit]:
    """Sort ``hosts`` as on the page: the worst status first, then hosts with warnings, then by name."""
    return sorted(hosts, key=_place)


def _place(host: HostAudit) -> tuple[int, int, bool, list[tuple[int, str]]]:
    bad = sum(layer.status != "desired" for layer in host.layers)
    return WORST_FIRST.index(host.status), -bad if host.status == "desired" else 0, not host.findings, _natural(host)


def _natural(host: HostAudit) -> list[tuple[int, str]]:
    """Return a sort key for host names that puts ``gpu9`` before ``gpu10``."""
    return [(int(part), "") if _NUMBER.fullmatch(part) else (0, part) for part in _NUMBER.split(host.host)]


def matrix(audit: FleetAudit, hosts: Sequence[HostAudit], ages: Ages) -> list[MatrixRow | FoldedRow]:
    """Return the rows of the matrix. ``hosts`` are the hosts of the audit in the order of the page."""
    mixed = have_several_stacks(hosts)
    layers = audit.layers
    alike: dict[tuple[object, ...], list[MatrixRow]] = {}
    for index, host in enumerate(hosts):
        row = _row(index, host, layers, ages, stack=name(host.stack) if mixed else "")
        alike.setdefault(_likeness(row, host, index), []).append(row)
    return list(_fold_healthy(alike.values()))


def _likeness(row: MatrixRow, host: HostAudit, index: int) -> tuple[object, ...]:
    statuses = tuple(cell.status for cell in row.cells)
    calm = {"desired", "absent"}.issuperset(statuses) and host.status == "desired"
    return ("calm", row.stack, statuses) if calm and not (host.findings or host.notes) else (index,)


def _fold_healthy(groups: Iterable[list[MatrixRow]]) -> Iterator[MatrixRow | FoldedRow]:
    number = 0
    for rows in groups:
        if len(rows) < FOLD_FROM:
            yield from rows
            continue
        number += 1
        members = tuple(replace(row, fold=number) for row in rows)
        yield FoldedRow(number, folded([row.host for row in rows]), "desired", rows[0].cells, members)


def _row(index: int, host: HostAudit, layers: Sequence[str], ages: Ages, *, stack: str) -> MatrixRow:
    statuses: dict[str, CellStatus] = {layer.name: layer.status for layer in host.layers}
    cells = tuple(_cell(layer, statuses.get(layer, "absent")) for layer in layers)
    since = ages.get((host.host, "status", "")) if host.status != "desired" else None
    lasting = since.date().isoformat() if since else ""
    return MatrixRow(index, name(host.host), host.status, cells, stack, _what(host), lasting, locked(host.notes))


def _cell(layer: str, status: CellStatus) -> Cell:
    if status == "absent":
        return Cell(name(layer), status, ABSENT, NOT_THERE)
    sign, word, _ = SHOWN[status]
    return Cell(name(layer), status, sign, word or WORDS[status])


def _what(host: HostAudit) -> str:
    if host.sentence:
        return line(host.sentence)
    remarks = [finding.rule for finding in sorted(host.findings, key=lambda finding: not finding.grave)]
    remarks += [f"{deviation.layer}: {deviation.what}" for deviation in host.deviations]
    remarks = list(dict.fromkeys([*remarks, *host.notes]))
    if not remarks:
        return ""
    more = f" +{len(remarks) - 1}" if len(remarks) > 1 else ""
    return line(remarks[0]) + more


def tiles(hosts: Sequence[HostAudit]) -> list[Tile]:
    """Return one tile for each status. Only the rare status ``differs`` has no tile if no host has it."""
    counts = Counter(host.status for host in hosts)
    warned = sum(_warned(host) for host in hosts)
    row, start = [], 0.0
    for status in STATUSES:
        if status == "differs" and not counts[status]:
            continue
        share = 100 * counts[status] / len(hosts) if hosts else 0.0
        remark = f"{warned} with warnings" if status == "desired" and warned else ""
        sign, _, _ = SHOWN[status]
        row.append(Tile(status, sign, WORDS[status], counts[status], start, share, remark))
        start += share
    return row


def _warned(host: HostAudit) -> bool:
    return host.status == "desired" and any(layer.status == "warning" for layer in host.layers)


def met(hosts: Iterable[HostAudit]) -> list[tuple[str, bool, int]]:
    """Return the known failures found on ``hosts``, grave and frequent ones first.

    Each entry has the name of the rule, whether the failure is grave, and the number of hosts.
    """
    counts = Counter(
        (finding.rule, finding.grave)
        for host in hosts
        for finding in {finding.rule: finding for finding in host.findings}.values()
    )
    ranked = sorted(counts.items(), key=lambda item: (not item[0][1], -item[1], item[0][0]))
    return [(name(rule), grave, count) for (rule, grave), count in ranked[:CHIPS]]


@dataclass(frozen=True, slots=True)
class MetFailure:
    """A known failure found on hosts. ``hosts`` are the first hosts (index and name), ``more`` counts all others."""

    rule: str
    layer: str
    grave: bool
    cause: str
    cure: str
    provision: bool
    link: str
    seen: str  #: description of the symptom on a host
    source: str
    hosts: tuple[tuple[int, str], ...]
    more: int


def failures(hosts: Sequence[HostAudit], rules: Mapping[str, FailureRule]) -> list[MetFailure]:
    """Return the known failures found on ``hosts``, grave and frequent ones first.

    ``hosts`` are in the order of the page.
    """
    seen: dict[str, tuple[Finding, list[tuple[int, str]]]] = {}
    for index, host in enumerate(hosts):
        for finding in {finding.rule: finding for finding in host.findings}.values():
            seen.setdefault(finding.rule, (finding, []))[1].append((index, name(host.host)))
    ranked = sorted(seen.values(), key=lambda one: (not one[0].grave, -len(one[1]), one[0].rule))
    return [_met(one, rules.get(one.rule), *first(places, OPENABLE)) for one, places in ranked[:FAILURES]]


def _met(finding: Finding, rule: FailureRule | None, hosts: Sequence[tuple[int, str]], more: int) -> MetFailure:
    return MetFailure(
        rule=name(finding.rule),
        layer=name(finding.layer),
        grave=finding.grave,
        cause=clean(finding.cause),
        cure=clean(finding.cure),
        provision=finding.provision,
        link=name(finding.link),
        seen=how_seen(rule.sign) if rule and rule.sign else "",
        source=rule.source if rule else "",
        hosts=tuple(hosts),
        more=more,
    )
