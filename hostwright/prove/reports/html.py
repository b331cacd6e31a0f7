"""Proofs as one self-contained HTML page with plots over the fleet and over time: no script, no network, no other file.

It has the audit's styles, and its Content-Security-Policy, which allows only the style in the page. Text that came from
hosts is escaped by the template.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from hostwright.audit.reports.html.charts import HEIGHT, WIDTH
from hostwright.audit.reports.html.html import environment_of, joined, policy
from hostwright.audit.reports.html.text import clean, folded, moment, name
from hostwright.common.text import shown_seconds
from hostwright.prove.fleetproof import WORST_FIRST, FleetProof, HostProof
from hostwright.prove.model import Measurement
from hostwright.prove.proofstore import PastFigure
from hostwright.prove.reports.plots import FLOOR, plots
from hostwright.prove.reports.table import WORDS, beside, figure

STYLES = tuple(f"styles/{part}.css" for part in ("colours", "page", "charts", "print"))
OWN_STYLE = Path(__file__).with_name("proofs.css")
#: outcome → the class of its colour, and its sign
STATES = {"passed": ("desired", "✓"), "failed": ("failing", "✗"), "no GPU": ("intent", "–"), "not run": ("unread", "?")}


def render_html(fleet: FleetProof, past: Sequence[PastFigure] = ()) -> str:
    """The page. ``past`` are the figures of recent months, with those of this run."""
    style = "\n".join((joined(STYLES), OWN_STYLE.read_text("utf-8").replace("\r\n", "\n")))
    hosts = sorted(fleet.hosts, key=lambda host: (WORST_FIRST.index(host.status), host.host))
    counts = [(sum(host.status == status for host in hosts), WORDS[status][0]) for status in WORST_FIRST]
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
            counts=[(number, word) for number, word in counts if number],
            hosts=hosts,
            alike=_alike(hosts),
            plots=plots(fleet, past),
            stand_ins=[name(file) for file in dict.fromkeys(file for host in hosts for file in host.stand_ins)],
        )
    )


def _alike(hosts: Sequence[HostProof]) -> list[tuple[str, HostProof]]:
    """The hosts, those with the same outcomes and nothing else to tell as one: their names, and one of them."""
    groups: dict[object, list[HostProof]] = defaultdict(list)
    for host in hosts:
        told = host.sentence, host.stand_ins, host.notes, *(result.findings for result in host.results)
        outcomes = tuple((result.proof, result.outcome, result.sentence) for result in host.results)
        groups[host.status, outcomes, told].append(host)
    return [(_names([host.host for host in same]), same[0]) for same in groups.values()]


def _names(hosts: Sequence[str]) -> str:
    return f"{folded(hosts)} ({len(hosts)} hosts)" if len(hosts) > 1 else name(hosts[0])


def _environment() -> Environment:
    environment = environment_of(Path(__file__).parent)
    environment.globals.update(width=WIDTH, height=HEIGHT, floor=FLOOR, states=STATES, words=WORDS)
    environment.filters.update(clean=clean, name=name, figure=_figure, status=_status, beside=beside)
    return environment


def _figure(one: Measurement) -> str:
    return figure(one).plain


def _status(host: HostProof) -> str:
    return WORDS[host.status][0]
