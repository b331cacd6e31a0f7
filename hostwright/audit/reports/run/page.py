"""A recorded run as one self-contained HTML page: no script, no network, no other file.

A Content-Security-Policy allows only the style in the page. Text from hosts is made printable, limited in length, and
escaped by the template.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from hostwright.apply.events import SHOWN_RESULTS
from hostwright.apply.journal.reading import RunSummary
from hostwright.apply.journal.runs import HostRun, RecordedRun, RoleRun
from hostwright.audit.reports.html.html import environment_of, joined, policy
from hostwright.audit.reports.html.matrix import FOLD_FROM
from hostwright.audit.reports.html.text import clean, first, folded, line, moment, name
from hostwright.audit.reports.run.chain import ChainLink
from hostwright.audit.reports.run.timeline import Lanes, ticks, timeline, whole_time
from hostwright.common.text import shown_seconds
from hostwright.plan.model import StepResult
from hostwright.plan.roles.layers import one_order

STYLES = tuple(f"styles/{part}.css" for part in ("colours", "page", "matrix", "panel", "print"))
OWN_STYLE = Path(__file__).with_name("run.css")
#: CSS class, symbol and sort position for each result of a host
RESULTS = {
    "failed": ("failing", "✗", 0),
    "unreachable": ("failing", "✗", 1),
    "interrupted": ("drift", "~", 2),
    "locked": ("warning", "!", 3),
    "stopped": ("warning", "!", 4),
    "running": ("intent", "»", 5),
    "pending": ("intent", "»", 6),
    "waiting": ("unread", "?", 7),
    "untouched": ("unread", "–", 8),
    "changed": ("desired", "✓", 9),
    "as desired": ("desired", "✓", 10),
}
_OTHER = ("desired", "✓", 11)
#: maximum number of characters to show from the end of a step's output
OUTPUT_CHARACTERS = 4000
STEPS, SAID = 400, 200  #: maximum number of steps, and of other records, to show of a host
STEPS_OF_LINK = 6  #: maximum number of steps to list for one part of the critical path


@dataclass(frozen=True, slots=True)
class LayerCell:
    """The result of one layer of a host in a run. If several jobs changed the layer, the times of the jobs are added
    up.
    """

    status: str  #: CSS class for the status
    sign: str
    took: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One row of the page: a host, or several hosts with the same result. ``cells`` are the cells of the
    slowest host.
    """

    anchor: str  #: HTML anchor of the host's steps
    title: str
    names: str  #: names of the hosts of the row; empty for a single host
    status: str  #: CSS class for the status
    sign: str
    result: str
    sentence: str
    cells: tuple[LayerCell | None, ...]
    hosts: tuple[tuple[str, HostRun], ...]  #: hosts of the row, each with the HTML anchor of its steps


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """The times that one layer took on the hosts of a run, and the slowest of these hosts."""

    layer: str
    hosts: int
    failed: int
    median: str
    longest: str
    slowest: str


def render_run(summary: RunSummary, run: RecordedRun) -> str:
    """Return the HTML page of the recorded run ``run``."""
    style = "\n".join((joined(STYLES), OWN_STYLE.read_text("utf-8").replace("\r\n", "\n")))
    hosts = sorted(run.hosts, key=lambda host: _look(host.result)[2])
    layers = one_order(list(dict.fromkeys(role.role for role in host.roles)) for host in run.hosts)
    whole_s = whole_time(run.hosts, summary.duration_s)
    lanes = timeline(run.hosts, whole_s)
    rows = list(_rows(hosts, layers))
    slowest = {row.anchor: _slowest(row, lanes) for row in rows}
    return (
        _environment()
        .get_template("run.html.j2")
        .render(
            policy=policy(style, ""),
            style=Markup(style),  # noqa: S704 - our own file and the audit's
            run=name(run.run),
            head=_head(summary, run),
            argv=clean(" ".join(run.header.argv)),
            counts=[(_look(result), number, shown_result(result)) for result, number in summary.results.items()],
            state=summary.state,
            status=summary.status,
            sentence=clean(summary.sentence),
            layers=[name(layer) for layer in layers],
            rows=rows,
            shown=[(lane, row.title) for row in rows for lane in lanes if lane is slowest[row.anchor]],
            others=[lane for lane in lanes if all(lane is not one for one in slowest.values())],
            lanes_by_host={lane.key: lane for lane in lanes},
            last=max((lane for lane in lanes if lane.path), key=lambda lane: lane.end_s, default=None),
            ticks=ticks(whole_s),
            times=list(_times(run.hosts, layers)),
            damaged=run.damaged,
            records=[record_line(record) for record in run.said[:SAID]],
        )
    )


def shown_result(result: str) -> str:
    """Return the text for ``result``, a host's result in a run. In a damaged record, ``result`` may be any text."""
    return SHOWN_RESULTS.get(result, name(result))


def _look(result: str) -> tuple[str, str, int]:
    return RESULTS.get(result, _OTHER)


def _head(summary: RunSummary, run: RecordedRun) -> list[tuple[str, str]]:
    header = run.header
    took = "" if summary.duration_s is None else shown_seconds(summary.duration_s)
    rows = (
        ("hosts", folded(header.hosts)),
        ("operator", header.operator),
        ("began", moment(summary.began)),
        ("took", took),
        ("inventory", header.inventory),
        ("of commit", header.inventory_commit),
        ("Hostwright", header.version),
    )
    return [(what, clean(text)) for what, text in rows if text]


def _rows(hosts: Sequence[HostRun], layers: Sequence[str]) -> Iterator[RunRow]:
    alike: dict[object, list[tuple[str, HostRun]]] = {}
    for number, host in enumerate(hosts, start=1):
        cells = tuple(cell and cell.status for cell in _cells(host, layers))
        alike.setdefault((host.result, host.sentence, cells), []).append((f"host-{number}", host))
    for number, same in enumerate(alike.values(), start=1):
        if len(same) < FOLD_FROM:
            yield from (_host_row(anchor, name(host.host), "", ((anchor, host),), layers) for anchor, host in same)
        else:
            names = folded([host.host for _, host in same])
            yield _host_row(f"hosts-{number}", f"{len(same)} hosts", names, tuple(same), layers)


def _host_row(
    anchor: str, title: str, names: str, hosts: tuple[tuple[str, HostRun], ...], layers: Sequence[str]
) -> RunRow:
    slowest = max((host for _, host in hosts), key=lambda host: sum(role.duration_s for role in host.roles))
    status, sign, _ = _look(slowest.result)
    cells = tuple(_cells(slowest, layers))
    return RunRow(anchor, title, names, status, sign, slowest.result, slowest.sentence, cells, hosts)


def _slowest(row: RunRow, lanes: Sequence[Lanes]) -> Lanes | None:
    names = {host.host for _, host in row.hosts}
    return max((lane for lane in lanes if lane.key in names), key=lambda lane: lane.end_s, default=None)


def _cells(host_run: HostRun, layers: Sequence[str]) -> list[LayerCell | None]:
    of_layer: dict[str, list[RoleRun]] = {}
    for role in host_run.roles:
        of_layer.setdefault(role.role, []).append(role)
    return [_cell(of_layer[layer]) if layer in of_layer else None for layer in layers]


def _cell(jobs: Sequence[RoleRun]) -> LayerCell:
    last, took = jobs[-1], shown_seconds(sum(job.duration_s for job in jobs))
    if last.status is None:
        return LayerCell("drift", "~", "no end")
    return LayerCell("failing", "✗", took) if last.status else LayerCell("desired", "✓", took)


def _times(hosts: Iterable[HostRun], layers: Sequence[str]) -> Iterator[LayerTimes]:
    took: dict[str, list[tuple[float, str]]] = {layer: [] for layer in layers}
    failed = dict.fromkeys(layers, 0)
    for host in hosts:
        for layer in dict.fromkeys(role.role for role in host.roles):
            jobs = [role for role in host.roles if role.role == layer]
            took[layer].append((sum(job.duration_s for job in jobs), host.host))
            failed[layer] += bool(jobs[-1].status)
    for layer, some in took.items():
        longest_s, slowest = max(some)
        median_s = statistics.median(seconds for seconds, _ in some)
        yield LayerTimes(
            name(layer), len(some), failed[layer], shown_seconds(median_s), shown_seconds(longest_s), name(slowest)
        )


def steps_of(host_run: HostRun) -> tuple[list[tuple[str, StepResult]], int]:
    """Return the first ``STEPS`` steps on a host with their layers, failed steps first, and the number of further
    steps.
    """
    steps = [(name(role.role), step) for role in host_run.roles for step in role.steps]
    return first(sorted(steps, key=lambda one: one[1].status == 0), STEPS)


def of_link(link: ChainLink) -> str:
    """Return the text for ``link``, a part of the critical path: its steps, or a description if it has no steps."""
    if not link.steps:
        return line(link.span.detail)
    steps = tuple(dict.fromkeys(link.steps))
    more = len(steps) - STEPS_OF_LINK
    return "; ".join(map(line, steps[:STEPS_OF_LINK])) + (f"; and {more} more" if more > 0 else "")


def output(step: StepResult) -> str:
    """Return the end of the output of ``step``; empty if the step succeeded."""
    if step.status == 0:
        return ""
    text = step.output.strip()
    cut = f"… cut ({len(text):,} characters)\n" if len(text) > OUTPUT_CHARACTERS else ""
    lines = text[-OUTPUT_CHARACTERS:].splitlines()
    return cut + "\n".join(clean(each, OUTPUT_CHARACTERS) for each in lines)


def record_line(record: Mapping[str, Any]) -> str:
    """Return a text for ``record``, which belongs to a run, and is neither a plan nor a job."""
    words = [str(record[key]) for key in ("what", "why", "text", "reason", "phase") if record.get(key)]
    findings = record.get("findings")
    words += [
        f"{finding.get('cause', '')}. {finding.get('cure', '')} ({finding.get('rule', '')})"
        for finding in (findings if isinstance(findings, list) else ())
        if isinstance(finding, dict)
    ]
    return clean(f"{record.get('kind', '')}: {': '.join(words)}")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = environment_of(Path(__file__).parent)
    environment.filters.update(
        clean=clean,
        name=name,
        result=shown_result,
        lasting=shown_seconds,
        output=output,
        record_line=record_line,
        steps=steps_of,
    )
    environment.filters.update(of_link=of_link)
    environment.globals.update(said_most=SAID)
    return environment
