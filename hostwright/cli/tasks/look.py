"""Read-only verbs: they show hosts, or what is known about them."""

from __future__ import annotations

from invoke import Context, task

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks.options import NAMED, READ, WANTED, ends, helps


@task(
    help=helps(*WANTED, out="save the plan to this file, for `invoke provision --plan FILE`"),
    iterable=["inventory", "var"],
    auto_shortflags=False,
)
@ends
def plan(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    out: str = "",
) -> int:
    """Show what would change on hosts: have → want, with a diff of each file. Changes nothing."""
    from hostwright.cli.verbs import changes

    selection = Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles)
    return changes.plan(selection, ConnectionOptions(ask_become_pass, accept_new), out=out, as_json=json)


@task(help=helps(*WANTED), iterable=["inventory", "var"], auto_shortflags=False)
@ends
def verify(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> int:
    """Confirm that nothing differs from the stack, then test every layer of hosts with testinfra."""
    from hostwright.cli.verbs import verify as verb

    selection = Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles)
    return verb.verify(selection, ConnectionOptions(ask_become_pass, accept_new), as_json=json)


@task(
    name="fleet",
    default=True,
    help=helps(
        *WANTED,
        "no_sudo",
        hosts="which hosts (default: the whole inventory)",
        csv="write a CSV report to this file (- for standard output)",
        junit="write a JUnit XML report for CI servers to this file (- for standard output)",
        prometheus="write metrics for node_exporter's textfile collector to this file (- for standard output)",
        html="write a self-contained HTML report to this file (- for standard output)",
        cyclonedx="write a software bill of materials of each host to this directory (CycloneDX JSON)",
        watch="repeat the audit at this interval (60s, 5m) until Ctrl-C",
        offline="do not connect: compare the facts of the last audit with the current stack",
        at_once="how many hosts to audit at a time (default: as many connections as this machine can open)",
        details="show every value and every GPU, not only those that differ",
    ),
    iterable=["inventory", "var"],
    auto_shortflags=False,
)
@ends
def audit_fleet(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    csv: str = "",
    junit: str = "",
    prometheus: str = "",
    html: str = "",
    cyclonedx: str = "",
    watch: str = "",
    offline: bool = False,
    no_sudo: bool = False,
    at_once: str = "",
    details: bool = False,
) -> int:
    """Show which hosts are not on their stack, since when, and their known problems. Changes nothing."""
    from hostwright.audit.auditor import AuditOptions
    from hostwright.cli.verbs import audit
    from hostwright.cli.views.reports import Outputs

    selection = Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles)
    return audit.audit(
        selection,
        ConnectionOptions(ask_become_pass, accept_new),
        Outputs(csv, junit, prometheus, html, cyclonedx),
        AuditOptions(sudo=not no_sudo, offline=offline, at_once=audit.at_once(at_once)),
        every=watch,
        details=details,
        as_json=json,
    )


@task(name="history", help=helps(*NAMED, "since"), iterable=["inventory"], auto_shortflags=False)
@ends
def audit_history(
    c: Context, hosts: str = "", inventory: list[str] | None = None, json: bool = False, since: str = ""
) -> int:
    """Show the audit history of hosts."""
    from hostwright.cli.verbs import history

    return history.history(Selection(hosts, tuple(inventory or ())), since=since, as_json=json)


@task(
    name="diff",
    help=helps(*NAMED, hosts="which hosts (default: all)", since="how far back: 7d, 12h (default: 7d)"),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def audit_diff(
    c: Context, hosts: str = "", inventory: list[str] | None = None, json: bool = False, since: str = "7d"
) -> int:
    """Show what changed across the fleet between an earlier audit and the latest one."""
    from hostwright.cli.verbs import history

    return history.diff(Selection(hosts, tuple(inventory or ())), since=since, as_json=json)


@task(help=helps(*WANTED, "no_sudo"), iterable=["inventory", "var"], auto_shortflags=False)
@ends
def doctor(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    no_sudo: bool = False,
) -> int:
    """Show known problems of hosts: symptom, cause, fix. Changes nothing."""
    from hostwright.audit.auditor import AuditOptions
    from hostwright.cli.verbs import audit

    selection = Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles)
    connection = ConnectionOptions(ask_become_pass, accept_new)
    return audit.doctor(selection, connection, AuditOptions(sudo=not no_sudo), as_json=json)


@task(
    name="vars",
    help=helps(*NAMED, "var", "roles", why="show file and line of every definition, the one in effect first"),
    iterable=["inventory", "var"],
    auto_shortflags=False,
)
@ends
def variables(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    why: bool = False,
) -> int:
    """Show the variables of each role for hosts."""
    from hostwright.cli.verbs import inventory as verb

    return verb.variables(Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles), why=why, as_json=json)


@task(help=helps(*NAMED), iterable=["inventory"], auto_shortflags=False)
@ends
def hosts(c: Context, hosts: str = "all", inventory: list[str] | None = None, json: bool = False) -> int:
    """Show the hosts that a selection matches, with address, stack and groups, and what keeps any from being used."""
    from hostwright.cli.verbs import inventory as verb

    return verb.hosts(Selection(hosts, tuple(inventory or ())), as_json=json)


@task(help=helps(*READ, "json"), iterable=["inventory"], auto_shortflags=False)
@ends
def stacks(c: Context, inventory: list[str] | None = None, json: bool = False) -> int:
    """Show the available stacks: what each pins, for which distributions, and what was tried where."""
    from hostwright.cli.verbs import stacks as verb

    return verb.stacks(Selection(inventory=tuple(inventory or ())), as_json=json)
