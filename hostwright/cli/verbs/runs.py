"""``invoke runs``, ``runs.show`` and ``runs.follow``: what was done, by whom, how it went, and what goes on now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from rich.text import Text

from hostwright.apply.journal.reading import LAST, Runs, RunSummary, short_ids, summary_of
from hostwright.apply.journal.runs import RecordedRun
from hostwright.apply.journal.selecting import sets_in
from hostwright.cli.console import Hanging, make_console
from hostwright.cli.opening import ask_password, open_fleet, targets_of
from hostwright.cli.views.changing.recorded import show_in_short
from hostwright.cli.views.progress import run_audience
from hostwright.cli.views.reports import check_files, put
from hostwright.cli.views.runs import record_line, runs_table, show_run
from hostwright.cli.views.shared import errors_json, print_document, show_errors, warn
from hostwright.common.errors import AS_DESIRED, FAILED, INTERRUPTED, InputError
from hostwright.common.places import state_root
from hostwright.common.quoting import sh
from hostwright.common.request import Request
from hostwright.common.text import printable
from hostwright.common.userpaths import STDOUT
from hostwright.inventory import Host, Inventory, select
from hostwright.inventory.model import ALL, Group
from hostwright.inventory.patterns import headed

if TYPE_CHECKING:
    from hostwright.apply.events import Emit
    from hostwright.apply.rollout.following import Followed
    from hostwright.apply.rollout.recording import Audience
    from hostwright.apply.rollout.rollout import Results
    from hostwright.plan.targets import TargetHost

TIMELINE = "--timeline"
NOBODY = "nobody works there"  #: said of a host without a run


def runs(request: Request) -> int:
    """``invoke runs``; a limit of 0 lists all."""
    recorded = Runs(state_root()).list()
    shown = recorded[: request.limit or None]
    if request.json:
        print_document("runs", {"runs": [asdict(run_summary) for run_summary in shown]})
        return AS_DESIRED
    out = make_console()
    if not recorded:
        out.print(Text(f"no run is recorded in {printable(str(state_root()))} yet"))
        return AS_DESIRED
    out.print(runs_table(shown, short_ids(run_summary.run for run_summary in recorded)))
    if len(recorded) > len(shown):
        out.print(Text(f"the last {len(shown)} of {len(recorded)} runs; --limit 0 lists all", style="dim"))
    return AS_DESIRED


def runs_show(request: Request, *, run: str = LAST, steps: bool = False, html: str = "") -> int:
    """``invoke runs.show``; ``html`` is the file of the page, ``-`` for standard output."""
    check_files({"html": html} if html else {}, as_json=request.json)
    archive = Runs(state_root())
    summary = archive.find(run or LAST)
    recorded = _narrowed(archive.load(summary.run), request.hosts)
    if html:
        from hostwright.audit.reports.run.page import render_run

        put(html, render_run(summary, recorded), "html")
    if request.json:
        document = {**asdict(summary), "hosts": [asdict(host) for host in recorded.hosts]}
        print_document("run", {**document, "said": recorded.said, "damaged": recorded.damaged})
    elif not html and (request.details or steps):
        show_run(make_console(), summary, recorded, outputs=steps)
    elif not html:
        show_in_short(make_console(), summary, recorded)
    return AS_DESIRED


def check_timeline(request: Request) -> None:
    """Raise ``InputError`` where the page of a run cannot be written to this file in the end; nothing for no file."""
    file = request.timeline
    if not file:
        return
    if request.check:
        raise InputError("--check changes nothing, so there would be nothing to draw: leave one of them out", TIMELINE)
    if file == STDOUT:
        raise InputError("what the run does goes to standard output; name a file", TIMELINE)
    check_files({TIMELINE.lstrip("-"): file})


@contextmanager
def drawn(file: str, audience: Audience) -> Iterator[Audience]:
    """The audience for a run, whose page is written to the file once the context ends, however the run did."""
    begun: list[str] = []

    @contextmanager
    def view(targets: Sequence[TargetHost], run: str) -> Iterator[Emit]:
        begun.append(run)
        with audience.view(targets, run) as emit:
            yield emit

    try:
        yield replace(audience, view=view) if file else audience
    finally:
        if begun:
            _draw(file, begun[0])


def _draw(file: str, run: str) -> None:
    """Write the page of a run; where that fails, say how it can be made, and change nothing of how the run ended."""
    from hostwright.audit.reports.run.page import render_run

    archive = Runs(state_root())
    try:
        summary = archive.find(run)
        put(file, render_run(summary, archive.load(run)), TIMELINE.lstrip("-"))
    except InputError as error:
        warn(f"{error}; the page of the run can still be made: {sh('hostwright runs.show --run %s --html FILE', run)}")


def runs_follow(request: Request, *, run: str = "") -> int:
    """``invoke runs.follow``; the exit status is that of the run, or 1 where a job on a host was seen to fail."""
    from hostwright.apply.journal.following import find

    try:
        if request.hosts and not run:
            return _follow_on_hosts(request)
        return _follow_here(find(Runs(state_root()), run), request)
    except KeyboardInterrupt:
        make_console(stderr=True).print(Text("not followed any more; the run itself goes on"))
        return INTERRUPTED


def _follow_here(summary: RunSummary, request: Request) -> int:
    """Follow a run by its record on this machine."""
    from hostwright.apply.journal.following import records

    out = make_console()
    for record in records(summary.folder):
        if not request.json:
            out.print(record_line(record), soft_wrap=True)
    ended = summary_of(summary.folder)
    if request.json:
        runs_show(replace(request, hosts=""), run=summary.run)
    elif ended.status is None:
        sentence = f"{summary.run} was cut off: its process is gone, and nothing says how it ended. Its jobs may go on"
        hosts, inventory = ",".join(summary.header.hosts), summary.header.inventory
        hint = sh("hostwright runs.follow --hosts %s --inventory %s", hosts, inventory)
        out.print(Text(printable(f"{sentence}; next: {hint}")))
    return FAILED if ended.status is None else ended.status


def _follow_on_hosts(request: Request) -> int:
    """Follow on the hosts themselves what works on them."""
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    audience = run_audience(request)
    return show_followed(fleet.follow(targets, password=ask_password(request), audience=audience), as_json=request.json)


def show_followed(results: Results[Followed], *, as_json: bool) -> int:
    """What was seen of a run on each host; the exit status of following it there."""
    if as_json:
        followed = [asdict(each) for each in results.values]
        print_document("followed", {"hosts": followed, "errors": errors_json(results.errors)})
    else:
        out = make_console()
        for said, names in _grouped(results.values).items():
            head, below = headed(names)
            out.print(Hanging(printable(f"{head}: {said}")))
            if below and said != NOBODY:
                out.print(Hanging(f"  {below}", style="dim"))
        show_errors(results.errors)
    return FAILED if results.errors or any(each.failed for each in results.values) else AS_DESIRED


def _grouped(hosts: Sequence[Followed]) -> Mapping[str, Sequence[str]]:
    """What came of the hosts, in words, and those of which the same can be said."""
    groups: dict[str, list[str]] = {}
    for each in sorted(hosts, key=lambda each: (bool(each.run), bool(each.failed))):
        whose = f"run {each.run} of {each.operator or 'an unidentified operator'}: " if each.run else ""
        how = f"failed in {', '.join(each.failed)}" if each.failed else "ended" if each.run else NOBODY
        groups.setdefault(whose + how, []).append(each.host)
    return groups


def _narrowed(run: RecordedRun, pattern: str) -> RecordedRun:
    """The run with only the hosts that a selection names; ``@failed`` and its like are this run's own."""
    if not pattern:
        return run
    names = {host_run.host: Host(host_run.host) for host_run in run.hosts}
    inventory = Inventory(names, {ALL: Group(ALL, tuple(names), (), 0)})
    sets = sets_in({host_run.host: host_run.result for host_run in run.hosts})
    chosen = {host.name for host in select(inventory, pattern, sets)}
    return replace(run, hosts=tuple(host_run for host_run in run.hosts if host_run.host in chosen))
