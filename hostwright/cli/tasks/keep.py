"""Verbs for stored data: the files of stacks, the records of runs, the locks of hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostwright.cli.tasks.options import REACHED, READ, verb
from hostwright.common.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostwright.apply.journal.reading import RunSummary
    from hostwright.apply.locking.hostlocks import HostLocks
    from hostwright.apply.rollout.rollout import Results

TITLE = "Keep"


@verb(
    *READ,
    "json",
    stack="download only the files of this stack (default: those of all hosts' stacks)",
    from_="copy files from this directory first, and download only the missing ones",
    export="also copy all files into this directory, for a machine without a network",
    import_="take all files from a directory that --export wrote; download nothing",
    pythons="download wheels for these Pythons, such as 3.9,3.10 (default: those that audits found on the hosts, and "
    "all of the stack for a host without audit)",
    systems="download packages for these distributions and kernels, such as debian-12:6.1.0-28-amd64 (default: those "
    "that audits found on the hosts)",
    renew="use the current package versions of the archive, with security updates, not those in the lock file",
    sources="search for packages in the archives of this file of apt sources (default: this machine's sources)",
    keyring="file with the keys that sign the archive (default: those of the distribution in /usr/share/keyrings)",
    advisories="only read the security bulletins (CSAF) in this directory, such as a clone of a vendor's repository",
)
def mirror(
    request: Request,
    stack: str = "",
    from_: str = "",
    export: str = "",
    import_: str = "",
    pythons: str = "",
    systems: str = "",
    renew: bool = False,
    sources: str = "",
    keyring: str = "",
    advisories: str = "",
) -> int:
    """Download the files of stacks to this machine once, and verify their checksums.

    This also downloads wheels for hosts that install Python packages without an index (wheels_from: mirror in the
    variables of a role), and packages of the distribution for hosts without access to its archive (base_packages_from:
    mirror). pip on this machine downloads wheels from its configured index, and apt on this machine finds packages.

    hostwright mirror
    hostwright mirror --from ~/downloads
    hostwright mirror --export /media/usb/stack
    hostwright mirror --advisories ~/product-security
    """
    from dataclasses import asdict

    from rich.text import Text

    from hostwright.cli.console import make_console
    from hostwright.cli.live.transfers import make_progress, summary
    from hostwright.cli.mirroring import file_source, package_search, pythons_in
    from hostwright.cli.opening import open_fleet, refuse_strangers
    from hostwright.cli.views.shared import print_document
    from hostwright.cli.views.stacks import show_bulletins
    from hostwright.common.command import Command
    from hostwright.common.interruption import on_interrupt
    from hostwright.common.text import shown_bytes
    from hostwright.common.userpaths import expanded, place_for

    source = file_source(from_, import_)
    to = place_for(export, "--export", "files of stacks") if export else None
    wanted, search = pythons_in(pythons), package_search(systems, sources, keyring, renew=renew)
    fleet = open_fleet(request)
    refuse_strangers(fleet)
    if advisories:
        show_bulletins(fleet.read_advisories(expanded(advisories)), as_json=request.json)
        return 0
    out = make_console(stderr=request.json)
    kept = "stopped; downloaded files are kept, and the same command continues from there"
    with on_interrupt(kept), make_progress(out) as progress:
        done = fleet.mirror(stack, source, to, pythons=wanted, search=search, progress=progress)
    if request.json:
        print_document("mirror", {"files": [asdict(file) for file in done]})
    elif done:
        out.print(summary(done))
        if to:
            size = shown_bytes(sum({file.sha256: file.size for file in done}.values()))
            there = Command("mirror", import_=to)
            out.print(Text(f"exported {size} to {to}; on the other machine: {there}"), soft_wrap=True)
    else:
        out.print("nothing to download: the roles of these hosts need no files of a stack")
    return 0


@verb(
    requirement="the packages to install, in pip's syntax: numpy==2.4.1, 'dask[complete]==2026.1.1'; repeatable",
    python="a version of Python, such as 3.12; repeatable",
    out="write STEM-py312.txt and so on, one file for each Python (default: print them)",
    glibc="use wheels that run on this version of glibc and on newer ones",
)
def pins(
    _: Request,
    requirement: list[str] | None = None,
    python: list[str] | None = None,
    out: str = "",
    glibc: str = "2.28",
) -> int:
    """Write pip constraints for a stack: all packages, with hashes of their wheels.

    pip on this machine resolves the requirement for each Python from its configured index, and installs nothing. No URL
    of an index is written.

    hostwright pins --requirement numpy==2.4.1 --python 3.11 --python 3.12 --out inventory/stacks/constraints/numpy
    """
    from pathlib import Path

    from rich.text import Text

    from hostwright.cli.console import make_console
    from hostwright.cli.pinning import check_pins, written_stem
    from hostwright.common.places import write_whole
    from hostwright.resources.python.pinning import pinned

    requirements, pythons = tuple(requirement or ()), tuple(dict.fromkeys(python or ()))
    check_pins(requirements, pythons, glibc)
    stem, console = written_stem(out), make_console()
    for each in pythons:
        text = pinned(requirements, each, glibc=int(glibc.partition(".")[2]))
        if stem is None:
            console.print(Text(text), end="", soft_wrap=True)
            continue
        file = Path(f"{stem}-py{each.replace('.', '')}.txt")
        write_whole(file, text.encode())
        console.print(Text(f'"{each}": {file.parent.name}/{file.name}'), soft_wrap=True)
    return 0


@verb(
    *REACHED,
    name="the name of the stack (default: from the nearest stack and the first host)",
    replace="overwrite the file of an earlier call",
)
def adopt(request: Request, name: str = "", replace: bool = False) -> int:
    """Write a stack of your own from hosts that were set up by hand.

    The new stack extends the most similar stack, and contains what differs on the hosts. Hosts that are alike get one
    stack. No host is changed, and no existing file is overwritten.

    hostwright adopt --hosts gpu01
    hostwright adopt --hosts 'gpu[01-40]' --name by-hand
    """
    from hostwright.cli.opening import ask_password, open_fleet, targets_of
    from hostwright.cli.views.adopted import show_adoption
    from hostwright.common.errors import AS_DESIRED, FAILED

    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    adoption = fleet.adopt(targets, name, replace=replace, password=ask_password(request))
    show_adoption(adoption, targets, as_json=request.json)
    return FAILED if adoption.errors else AS_DESIRED


@verb("json", called="list", default=True, limit="number of latest runs to show; 0 shows all")
def runs_list(request: Request) -> int:
    """Show the latest runs: who, when, on which hosts, with what result.

    hostwright runs
    """
    from dataclasses import asdict

    from rich.text import Text

    from hostwright.apply.journal.reading import Runs, short_ids
    from hostwright.cli.console import make_console
    from hostwright.cli.views.runs import runs_table
    from hostwright.cli.views.shared import print_document
    from hostwright.common.places import state_root
    from hostwright.common.text import printable

    recorded = Runs(state_root()).list()
    latest = recorded[: request.limit or None]
    if request.json:
        print_document("runs", {"runs": [asdict(run_summary) for run_summary in latest]})
        return 0
    out = make_console()
    if not recorded:
        out.print(Text(f"no run is recorded in {printable(str(state_root()))} yet"))
        return 0
    out.print(runs_table(latest, short_ids(run_summary.run for run_summary in recorded)))
    if len(recorded) > len(latest):
        out.print(Text(f"the last {len(latest)} of {len(recorded)} runs; --limit 0 lists all", style="dim"))
    return 0


@verb(
    "json",
    called="show",
    run="the id of the run, or its first characters (default: the latest run)",
    details="show each host with every plan, step, retry and failed check",
    steps="show the same as --details, and the output of each step",
    html="write a self-contained HTML page with the timeline of hosts and layers to this file (- for standard output)",
    hosts="show only these hosts: gpu01,gpu[03-09]",
)
def runs_show(request: Request, run: str = "last", steps: bool = False, html: str = "") -> int:
    """Show a run: what was done on its hosts, what failed and why.

    hostwright runs.show
    hostwright runs.show 20261123t1657 --hosts gpu01 --steps
    hostwright runs.show --html run.html
    """
    from dataclasses import asdict

    from hostwright.apply.journal.reading import LAST, Runs
    from hostwright.apply.journal.selecting import narrowed
    from hostwright.cli.console import make_console
    from hostwright.cli.views.changing.recorded import show_in_short
    from hostwright.cli.views.reports import check_files, put
    from hostwright.cli.views.runs import show_run
    from hostwright.cli.views.shared import print_document
    from hostwright.common.places import state_root

    check_files({"html": html} if html else {}, as_json=request.json)
    archive = Runs(state_root())
    summary = archive.find(run or LAST)
    recorded = narrowed(archive.load(summary.run), request.hosts)
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
    return 0


@verb(
    *REACHED,
    called="follow",
    run="the id of the run, or its first characters (default: the run in progress on this machine)",
    hosts="hosts on which to follow a run that was started on another machine",
)
def runs_follow(request: Request, run: str = "") -> int:
    """Follow a run on this or another machine until it ends. Changes nothing.

    hostwright runs.follow
    hostwright runs.follow --hosts @rack3
    """
    from rich.text import Text

    from hostwright.apply.journal.following import find
    from hostwright.apply.journal.reading import Runs
    from hostwright.cli.console import make_console
    from hostwright.cli.opening import ask_password, open_fleet, targets_of
    from hostwright.cli.views.followed import show_followed
    from hostwright.cli.views.progress import run_view
    from hostwright.common.errors import INTERRUPTED
    from hostwright.common.places import state_root

    try:
        if not request.hosts or run:
            return _follow_here(find(Runs(state_root()), run), request)
        fleet = open_fleet(request)
        targets = targets_of(fleet, request, outside=True)
        followed = fleet.follow(targets, password=ask_password(request), view=run_view(request))
        return show_followed(followed, as_json=request.json)
    except KeyboardInterrupt:
        make_console(stderr=True).print(Text("stopped following; the run itself continues"))
        return INTERRUPTED


def _follow_here(summary: RunSummary, request: Request) -> int:
    from dataclasses import replace

    from rich.text import Text

    from hostwright.apply.journal.following import records
    from hostwright.apply.journal.reading import summary_of
    from hostwright.cli.console import make_console
    from hostwright.cli.views.runs import record_line
    from hostwright.common.command import Command
    from hostwright.common.errors import FAILED
    from hostwright.common.text import printable

    out = make_console()
    for record in records(summary.folder):
        if not request.json:
            out.print(record_line(record), soft_wrap=True)
    ended = summary_of(summary.folder)
    if request.json:
        runs_show(replace(request, hosts=""), run=summary.run)
    elif ended.status is None:
        sentence = f"{summary.run} was cut off: its process is gone, its result is unknown, and its jobs may still run"
        hosts, inventory = ",".join(summary.header.hosts), summary.header.inventory
        follow = Command("runs.follow", hosts=hosts, inventory=inventory)
        out.print(Text(printable(f"{sentence}; next: {follow}")))
    return FAILED if ended.status is None else ended.status


@verb(
    *REACHED,
    reason="the reason, shown to other operators: RMA, burn-in, do not touch",
    for_="duration of the lock: 90m, 12h, 3d, 2w (default: 8h)",
    list="only show existing locks",
    force="replace the lock of another operator",
)
def lock(request: Request, reason: str = "", for_: str = "", list: bool = False) -> int:
    """Lock hosts against changes for some time; read-only verbs still work.

    hostwright lock gpu01 --reason RMA --for 3d
    """
    from hostwright.apply.locking.hostlocks import read_reason
    from hostwright.cli.opening import ask_password, open_fleet, targets_of
    from hostwright.plan.host.locks import DEFAULT_FOR, read_duration

    why, lasts = ("", None) if list else (read_reason(reason), read_duration(for_ or DEFAULT_FOR))
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = ask_password(request)
    if lasts is None:
        return _locks_shown(lambda: fleet.locks(targets, password=password), request)
    return _locks_shown(lambda: fleet.lock(targets, why, lasts, force=request.force, password=password), request)


@verb(*REACHED, force="remove the lock of another operator")
def unlock(request: Request) -> int:
    """Remove the lock from hosts.

    hostwright unlock gpu01
    """
    from hostwright.cli.opening import ask_password, open_fleet, targets_of

    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = ask_password(request)
    return _locks_shown(lambda: fleet.unlock(targets, force=request.force, password=password), request)


def _locks_shown(work: Callable[[], Results[HostLocks]], request: Request) -> int:
    from hostwright.cli.exits import shown
    from hostwright.cli.views.locks import show_locks
    from hostwright.common.errors import AS_DESIRED, FAILED

    results = shown(work, lambda results: show_locks(results, as_json=request.json))
    return FAILED if results.errors else AS_DESIRED
