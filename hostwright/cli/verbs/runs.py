"""``invoke runs`` and ``invoke runs.show``: what was done before, by whom, and how it went."""

from __future__ import annotations

from dataclasses import asdict, replace

from rich.text import Text

from hostwright.apply.host.outcome import AS_DESIRED
from hostwright.apply.journal.reading import LAST, Runs
from hostwright.apply.journal.runs import RecordedRun
from hostwright.apply.journal.selecting import sets_in
from hostwright.cli.console import make_console
from hostwright.cli.views.reports import check_files, put
from hostwright.cli.views.runs import runs_table, show_run
from hostwright.cli.views.shared import print_document
from hostwright.common.places import state_root
from hostwright.common.text import printable
from hostwright.inventory import Host, Inventory, select
from hostwright.inventory.model import ALL, Group

SHOWN = 20  #: runs listed unless told otherwise; 0 is all


def runs(*, limit: int = SHOWN, as_json: bool = False) -> int:
    """``invoke runs``; a ``limit`` of 0 lists all."""
    recorded = Runs(state_root()).list()
    shown = recorded[: limit or None]
    if as_json:
        print_document("runs", {"runs": [asdict(run_summary) for run_summary in shown]})
        return AS_DESIRED
    out = make_console()
    if not recorded:
        out.print(Text(f"no run is recorded in {printable(str(state_root()))} yet"))
        return AS_DESIRED
    out.print(runs_table(shown))
    if len(recorded) > len(shown):
        out.print(Text(f"the last {len(shown)} of {len(recorded)} runs; --limit 0 lists all", style="dim"))
    return AS_DESIRED


def runs_show(*, run: str = LAST, hosts: str = "", steps: bool = False, html: str = "", as_json: bool = False) -> int:
    """``invoke runs.show``; ``html`` is the file of the page, ``-`` for standard output."""
    check_files({"html": html} if html else {}, as_json=as_json)
    archive = Runs(state_root())
    summary = archive.find(run or LAST)
    recorded = _narrowed(archive.load(summary.run), hosts)
    if html:
        from hostwright.audit.reports.run.page import render_run

        put(html, render_run(summary, recorded), "html")
    if as_json:
        document = {**asdict(summary), "hosts": [asdict(host) for host in recorded.hosts]}
        print_document("run", {**document, "said": recorded.said, "damaged": recorded.damaged})
    elif not html:
        show_run(make_console(), summary, recorded, outputs=steps)
    return AS_DESIRED


def _narrowed(run: RecordedRun, pattern: str) -> RecordedRun:
    """The run with only the hosts that a selection names; ``@failed`` and its like are this run's own."""
    if not pattern:
        return run
    names = {host_run.host: Host(host_run.host) for host_run in run.hosts}
    inventory = Inventory(names, {ALL: Group(ALL, tuple(names), (), 0)})
    sets = sets_in({host_run.host: host_run.result for host_run in run.hosts})
    chosen = {host.name for host in select(inventory, pattern, sets)}
    return replace(run, hosts=tuple(host_run for host_run in run.hosts if host_run.host in chosen))
