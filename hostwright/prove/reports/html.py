"""The results of proofs as one self-contained HTML page with plots of figures.

The page has the styles of audit pages, and a Content-Security-Policy that allows only the style in the page. It needs
no script, network or other file. The template escapes text from hosts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from hostwright.audit.reports.html.charts import HEIGHT, WIDTH
from hostwright.audit.reports.html.html import environment_of, joined, policy
from hostwright.audit.reports.html.text import clean, folded, line, moment, name
from hostwright.common.text import shown_seconds
from hostwright.plan.roles.layers import one_order
from hostwright.prove.fleetproof import WORST_FIRST, FleetProof, HostProof
from hostwright.prove.model import Measurement
from hostwright.prove.proofstore import PastFigure
from hostwright.prove.reports.plots import FLOOR, plots
from hostwright.prove.reports.table import WORDS, beside, figure

STYLES = tuple(f"styles/{part}.css" for part in ("colours", "page", "matrix", "charts", "print"))
OWN_STYLE = Path(__file__).with_name("proofs.css")
#: outcome of a proof → CSS class and symbol
STATES = {"passed": ("desired", "✓"), "failed": ("failing", "✗"), "no GPU": ("intent", "–"), "not run": ("unread", "?")}
#: status of a host → CSS class and symbol
HOSTS = {
    "failed": ("failing", "✗"),
    "unread": ("unread", "?"),
    "not proved": ("drift", "!"),
    "no GPU": ("intent", "–"),
    "passed": ("desired", "✓"),
}


@dataclass(frozen=True, slots=True)
class ProofRow:
    """One row of the page's table: a host, or several hosts with equal outcomes and details.

    ``host`` is one of these hosts.
    """

    number: int
    title: str
    names: str  #: names of the hosts if there are several; else empty
    host: HostProof

    @property
    def details(self) -> bool:
        """Whether the page shows details of the row's hosts in addition to the outcomes of their proofs."""
        host = self.host
        spoken = (host.sentence, host.stand_ins, host.notes)
        return any(spoken) or any(result.sentence or result.findings for result in host.results)

    @property
    def remark(self) -> str:
        """The first error, finding, reason or note about the row's hosts; empty without one."""
        results = self.host.results
        findings = (finding.sentence for result in results for finding in result.findings)
        details = (self.host.sentence, *findings, *(result.sentence for result in results), *self.host.notes)
        return next(filter(None, details), "")

    def outcome(self, proof: str) -> str:
        """Return the outcome of the proof with the key ``proof``; empty if the hosts lack this proof."""
        return next((result.outcome for result in self.host.results if result.proof == proof), "")


@dataclass(frozen=True, slots=True)
class ProofTile:
    """The number of hosts with one status. ``start`` and ``share`` are the position and length of a bar in percent."""

    status: str
    hosts: int
    start: float
    share: float


def render_html(fleet: FleetProof, past: Sequence[PastFigure] = ()) -> str:
    """Return the HTML page. ``past`` are the hosts' figures of the last months, including this run."""
    style = "\n".join((joined(STYLES), OWN_STYLE.read_text("utf-8").replace("\r\n", "\n")))
    hosts = sorted(fleet.hosts, key=lambda host: (WORST_FIRST.index(host.status), host.host))
    return (
        _environment()
        .get_template("proofs.html.j2")
        .render(
            policy=policy(style, ""),
            style=Markup(style),  # noqa: S704 - our own files
            at=moment(fleet.at),
            took=shown_seconds(fleet.took_s),
            inventory=name(fleet.inventory),
            level=fleet.level,
            statistics=fleet.statistics,
            tiles=list(_tiles(hosts)),
            hosts=hosts,
            well=sum(host.status == "passed" for host in hosts),
            proofs=one_order([result.proof for result in host.results] for host in hosts),
            rows=_rows(hosts),
            plots=plots(fleet, past),
            stand_ins=[name(file) for file in dict.fromkeys(file for host in hosts for file in host.stand_ins)],
        )
    )


def _tiles(hosts: Sequence[HostProof]) -> Iterator[ProofTile]:
    start = 0.0
    for status in WORST_FIRST:
        number = sum(host.status == status for host in hosts)
        share = 100 * number / len(hosts) if hosts else 0.0
        yield ProofTile(status, number, start, share)
        start += share


def _rows(hosts: Sequence[HostProof]) -> list[ProofRow]:
    groups: dict[object, list[HostProof]] = defaultdict(list)
    for host in hosts:
        details = host.sentence, host.stand_ins, host.notes, *(result.findings for result in host.results)
        outcomes = tuple((result.proof, result.outcome, result.sentence) for result in host.results)
        groups[host.status, outcomes, details].append(host)
    return [_row(number, same) for number, same in enumerate(groups.values(), start=1)]


def _row(number: int, same: Sequence[HostProof]) -> ProofRow:
    if len(same) == 1:
        return ProofRow(number, name(same[0].host), "", same[0])
    return ProofRow(number, f"{len(same)} hosts", folded([host.host for host in same]), same[0])


def _environment() -> Environment:
    environment = environment_of(Path(__file__).parent)
    environment.globals.update(width=WIDTH, height=HEIGHT, floor=FLOOR, states=STATES, of_hosts=HOSTS, words=WORDS)
    environment.filters.update(clean=clean, name=name, line=line, figure=_figure, status=_status, beside=beside)
    return environment


def _figure(one: Measurement) -> str:
    return figure(one).plain


def _status(host: HostProof) -> str:
    return WORDS[host.status][0]
