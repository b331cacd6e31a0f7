"""Verbs that look: at hosts, or at what is known of them. They change nothing."""

from __future__ import annotations

from invoke import Context, task

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks.options import NAMED, WANTED, ends, helps


@task(
    help=helps(*WANTED, out="save the plan here, for `invoke provision --plan FILE`"),
    iterable=["var"],
    auto_shortflags=False,
)
@ends
def plan(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    out: str = "",
) -> int:
    """Show what stands between hosts and their stack: have → want, and a diff of each file. Changes nothing."""
    from hostwright.cli.verbs import changes

    selection = Selection(hosts, inventory, tuple(var or ()), roles)
    return changes.plan(selection, ConnectionOptions(ask_become_pass, accept_new), out=out, as_json=json)


@task(help=helps(*WANTED), iterable=["var"], auto_shortflags=False)
@ends
def verify(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> int:
    """Check every layer of hosts with testinfra, after a look that must find nothing to change."""
    from hostwright.cli.verbs import verify as verb

    selection = Selection(hosts, inventory, tuple(var or ()), roles)
    return verb.verify(selection, ConnectionOptions(ask_become_pass, accept_new), as_json=json)


@task(
    name="fleet",
    default=True,
    help=helps(
        *WANTED,
        "no_sudo",
        hosts="which hosts (default: all of the inventory)",
        csv="write the audit as CSV to this file, or - for standard output",
        junit="write it as JUnit XML for a build server, likewise",
        prometheus="write it for node_exporter's textfile collector, likewise",
        html="write it as one page for a browser, which needs no network, likewise",
        watch="again and again, every 60s or 5m, until Ctrl-C",
        offline="ask no host: judge the facts of the last audit by the stack as it is now",
        at_once="so many hosts at a time (default: as many as this machine can hold open)",
        details="every value and every card, not only what is not as desired",
    ),
    iterable=["var"],
    auto_shortflags=False,
)
@ends
def audit_fleet(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    csv: str = "",
    junit: str = "",
    prometheus: str = "",
    html: str = "",
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

    selection = Selection(hosts, inventory, tuple(var or ()), roles)
    return audit.audit(
        selection,
        ConnectionOptions(ask_become_pass, accept_new),
        Outputs(csv, junit, prometheus, html),
        AuditOptions(sudo=not no_sudo, offline=offline, at_once=audit.at_once(at_once)),
        every=watch,
        details=details,
        as_json=json,
    )


@task(name="history", help=helps(*NAMED, "since"), auto_shortflags=False)
@ends
def audit_history(c: Context, hosts: str = "", inventory: str = "", json: bool = False, since: str = "") -> int:
    """Show what audits saw of hosts over time."""
    from hostwright.cli.verbs import history

    return history.history(Selection(hosts, inventory), since=since, as_json=json)


@task(
    name="diff",
    help=helps(*NAMED, hosts="which hosts (default: all)", since="how far back: 7d, 12h (default 7d)"),
    auto_shortflags=False,
)
@ends
def audit_diff(c: Context, hosts: str = "", inventory: str = "", json: bool = False, since: str = "7d") -> int:
    """Show what changed over the fleet between an earlier audit and the last one."""
    from hostwright.cli.verbs import history

    return history.diff(Selection(hosts, inventory), since=since, as_json=json)


@task(help=helps(*WANTED, "no_sudo"), iterable=["var"], auto_shortflags=False)
@ends
def doctor(
    c: Context,
    hosts: str = "",
    inventory: str = "",
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

    selection = Selection(hosts, inventory, tuple(var or ()), roles)
    connection = ConnectionOptions(ask_become_pass, accept_new)
    return audit.doctor(selection, connection, AuditOptions(sudo=not no_sudo), as_json=json)


@task(
    name="vars",
    help=helps(*NAMED, "var", "roles", why="file and line of every definition, the winning one first"),
    iterable=["var"],
    auto_shortflags=False,
)
@ends
def variables(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    why: bool = False,
) -> int:
    """Show the variables of each role on hosts."""
    from hostwright.cli.verbs import inventory as verb

    return verb.variables(Selection(hosts, inventory, tuple(var or ()), roles), why=why, as_json=json)


@task(help=helps(*NAMED), auto_shortflags=False)
@ends
def hosts(c: Context, hosts: str = "all", inventory: str = "", json: bool = False) -> int:
    """Show which hosts a selection names, folded, with their address, stack and groups."""
    from hostwright.cli.verbs import inventory as verb

    return verb.hosts(Selection(hosts, inventory), as_json=json)
