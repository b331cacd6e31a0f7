"""Read-only verbs about hosts: comparison with their stacks, tests, measurements, and audits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostwright.cli.tasks.options import NAMED, WANTED, verb
from hostwright.common.command import Command
from hostwright.common.request import Request

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import RenderableType

TITLE = "Inspect (changes nothing)"


@verb(
    *WANTED,
    out=f"save the plan to this file, for {Command('provision', plan='FILE')}",
    summary="show only the names of the changes in each layer: no values, no diffs",
)
def plan(request: Request, out: str = "", summary: bool = False) -> int:
    """Show what would change on hosts, with a diff of each file. Changes nothing.

    hostwright plan gpu01 gpu02
    hostwright plan @rack3 --out rack3.plan
    """
    from hostwright.cli.changing import show_plan
    from hostwright.cli.opening import open_fleet, targets_of

    fleet = open_fleet(request)
    return show_plan(fleet, targets_of(fleet, request), request, out=out, brief=summary)


@verb(
    *WANTED,
    "notify",
    details="show each host and layer separately, and every change on hosts where no layer is as desired",
    prove="afterwards run the proofs of this level: quick or full",
)
def verify(request: Request) -> int:
    """Check that hosts match their stack, then test every layer with testinfra.

    hostwright verify gpu01
    """
    import time

    from hostwright.cli.exits import shown
    from hostwright.cli.opening import ask_password, open_fleet, targets_of
    from hostwright.cli.proving import verify_and_prove
    from hostwright.cli.views.progress import run_view
    from hostwright.cli.views.verdicts import show_verdicts

    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    if request.prove:
        return verify_and_prove(fleet, targets, request, request.prove)
    password = ask_password(request)
    began_s = time.monotonic()
    ended = shown(
        lambda: fleet.verify(targets, password=password, view=run_view(request)),
        lambda ended: show_verdicts(
            targets, ended.results, details=request.details, took_s=time.monotonic() - began_s, as_json=request.json
        ),
    )
    return ended.status


@verb(
    *WANTED,
    "notify",
    quick="run only the quick proofs: a few minutes, without burn-in",
    proofs="run only these proofs or layers, separated by commas",
    baseline="store these measurements as the baseline: a later loss is a finding",
    html="write a self-contained HTML report with plots to this file (- for standard output)",
    prometheus="write metrics for node_exporter's textfile collector to this file (- for standard output)",
    at_once="number of hosts to prove at a time (default: as many connections as this machine can open)",
    details="show every measurement, and its device",
)
def prove(
    request: Request,
    quick: bool = False,
    proofs: str = "",
    baseline: bool = False,
    html: str = "",
    prometheus: str = "",
) -> int:
    """Measure hosts, and compare with their peers and their past. Changes nothing.

    hostwright prove gpu01 --quick
    """
    from hostwright.cli.exits import shown
    from hostwright.cli.opening import ask_password, hosts_at_once, open_fleet, targets_of
    from hostwright.cli.proving import names_in, rendered, show_proved
    from hostwright.cli.views.progress import run_view
    from hostwright.cli.views.reports import check_files, put
    from hostwright.common.userpaths import STDOUT
    from hostwright.prove.proving import ProveOptions

    options = ProveOptions("quick" if quick else "full", names_in(proofs), baseline, hosts_at_once(request))
    files = {name: file for name, file in (("prometheus", prometheus), ("html", html)) if file}
    check_files(files, as_json=request.json)
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    quiet = STDOUT in files.values()
    password, view = ask_password(request), run_view(request, quiet=request.json or quiet)
    proved = shown(
        lambda: fleet.prove(targets, options, password=password, view=view),
        lambda proved: show_proved(proved, targets, request, quiet=quiet),
    )
    for name, file in files.items():
        put(file, rendered(name, proved), name)
    return proved.status


@verb(
    *WANTED,
    "no_sudo",
    called="fleet",
    default=True,
    csv="write a CSV report to this file (- for standard output)",
    junit="write a JUnit XML report for CI servers to this file (- for standard output)",
    prometheus="write metrics for node_exporter's textfile collector to this file (- for standard output)",
    html="write a self-contained HTML report to this file (- for standard output)",
    cyclonedx="write a software bill of materials of each host to this directory (CycloneDX JSON)",
    watch="repeat the audit at this interval (60s, 5m) until Ctrl-C",
    offline="do not connect: compare the facts of the last audit with the current stack",
    at_once="number of hosts to audit at a time (default: as many connections as this machine can open)",
    details="show every value and every GPU, not only differences",
    hosts="the hosts (default: the whole inventory)",
)
def audit_fleet(
    request: Request,
    csv: str = "",
    junit: str = "",
    prometheus: str = "",
    html: str = "",
    cyclonedx: str = "",
    watch: str = "",
    offline: bool = False,
) -> int:
    """Show hosts that differ from their stack, and known problems. Changes nothing.

    hostwright audit
    hostwright audit @rack3 --html rack3.html
    """
    from hostwright.audit.auditor import AuditOptions
    from hostwright.cli.exits import shown
    from hostwright.cli.opening import hosts_at_once
    from hostwright.cli.views.audits import auditor_of, audits_table, show_audited, write_reports
    from hostwright.cli.views.progress import watch as repeat
    from hostwright.cli.views.reports import Outputs

    outputs = Outputs(csv, junit, prometheus, html, cyclonedx)
    outputs.check(as_json=request.json, watched=bool(watch))
    options = AuditOptions(sudo=not request.no_sudo, offline=offline, at_once=hosts_at_once(request))
    auditor = auditor_of(request, options)
    if watch:

        def once() -> tuple[int, RenderableType]:
            look = auditor.audit()
            return write_reports(outputs, auditor, look), audits_table(request, auditor, look, first=True)

        return repeat(watch, once)
    look = shown(auditor.audit, lambda look: show_audited(request, outputs, auditor, look))
    return write_reports(outputs, auditor, look)


@verb(*NAMED, "since", called="history", details="show every change in full, instead of one line for each layer")
def audit_history(request: Request) -> int:
    """Show the audit history of hosts: one line for each audit and changed layer.

    hostwright audit.history gpu01 --since 30d
    """
    from dataclasses import asdict

    from hostwright.cli.console import make_console
    from hostwright.cli.opening import open_fleet, targets_of
    from hostwright.cli.views.history import timelines
    from hostwright.cli.views.shared import print_document

    fleet = open_fleet(request)
    earliest = _since(request.since)
    histories = fleet.history(targets_of(fleet, request), earliest)
    if request.json:
        print_document("history", {"hosts": [asdict(host_history) for host_history in histories]})
        return 0
    out = make_console()
    for timeline in timelines(histories, details=request.details):
        out.print(timeline)
    return 0


@verb(
    *NAMED,
    "since=7d",
    called="diff",
    hosts="the hosts (default: all)",
    since="age of the earlier audit: 7d, 12h (default: 7d)",
)
def audit_diff(request: Request) -> int:
    """Show what changed on all hosts between an earlier audit and the latest one.

    hostwright audit.diff --since 24h
    """
    from dataclasses import asdict

    from hostwright.cli.console import make_console
    from hostwright.cli.opening import open_fleet, targets_of
    from hostwright.cli.views.history import changes
    from hostwright.cli.views.shared import print_document
    from hostwright.common.errors import InputError

    fleet = open_fleet(request)
    earliest = _since(request.since)
    if earliest is None:
        raise InputError("no time is given; pass --since 7d", "--since")
    difference = fleet.changes(earliest, targets_of(fleet, request) if request.hosts else None)
    if request.json:
        print_document("diff", asdict(difference))
    else:
        make_console().print(changes(difference))
    return 0


def _since(text: str) -> datetime | None:
    from datetime import timedelta

    from hostwright.audit.auditing import now
    from hostwright.common import durations
    from hostwright.common.errors import InputError

    if not text:
        return None
    try:
        return now() - timedelta(seconds=durations.seconds(text))
    except ValueError as error:
        raise InputError(str(error), "--since") from error


@verb(*WANTED, "no_sudo", explain="explain a known problem by its name; no host is contacted")
def doctor(request: Request, explain: str = "") -> int:
    """Show known problems of hosts: symptom, cause, fix. Changes nothing.

    hostwright doctor gpu01
    hostwright doctor --explain no-space
    """
    from hostwright.audit.auditor import AuditOptions
    from hostwright.cli.exits import shown
    from hostwright.cli.views.audits import auditor_of, diagnosis_status, explain_rule, show_diagnosed

    if explain:
        explain_rule(explain)
        return 0
    auditor = auditor_of(request, AuditOptions(sudo=not request.no_sudo))
    return diagnosis_status(shown(auditor.audit, lambda look: show_diagnosed(request, auditor, look)).audit)
