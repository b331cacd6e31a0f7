"""Prints audits and diagnoses: the state of hosts, and known problems with their ages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console, Group
from rich.markdown import Markdown
from rich.text import Text

from hostwright.audit.auditor import AuditOptions, Auditor, AuditResult
from hostwright.audit.fleetaudit import DRIVER_OF_CARDS, GPU_LAYER, FleetAudit, HostAudit
from hostwright.cli import console
from hostwright.cli.opening import ask_password, open_fleet, roles_here, targets_of
from hostwright.cli.views.progress import AuditView
from hostwright.cli.views.reports import Outputs
from hostwright.cli.views.shared import print_document, show_led, show_next
from hostwright.common.command import Command
from hostwright.common.errors import AS_DESIRED, DIFFERS, FAILED, InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.request import Request

EVERY_HOST = "all"


def auditor_of(request: Request, options: AuditOptions) -> Auditor:
    """Return the auditor for the hosts that ``request`` selects; without a selection, for all hosts."""
    fleet = open_fleet(request)
    targets = targets_of(fleet, replace(request, hosts=request.hosts or EVERY_HOST))
    return fleet.auditor(targets, options, password=ask_password(request), view=AuditView())


def audits_table(request: Request, auditor: Auditor, look: AuditResult, *, first: bool = False) -> Group:
    """Return the result ``look`` of an audit as a table. With ``first``, the totals are at the top instead
    of the end.
    """
    from hostwright.audit.reports.table import show_audit

    known = [host for host in look.audit.hosts if host.status != "new"]
    every = request.details or len(auditor.targets) == len(known) == 1
    return show_audit(look.audit, look.ages, details=every, columns=console.make_console().width, first=first)


def show_audited(request: Request, outputs: Outputs, auditor: Auditor, look: AuditResult) -> None:
    """Print the audit ``look`` and recommended commands; print nothing if a report goes to standard output."""
    from hostwright.audit.reports.table import next_hosts

    if request.json:
        print_document("audit", asdict(look.audit))
    elif not outputs.on_stdout:
        out = console.make_console()
        out.print(console.with_sums(audits_table(request, auditor, look)))
        _show_next(out, auditor, look, next_hosts(look.audit))


def show_diagnosed(request: Request, auditor: Auditor, look: AuditResult) -> None:
    """Print the known problems that the audit ``look`` found on hosts, and recommended commands."""
    from hostwright.audit.reports.diagnosis import next_commands, show_diagnosis

    if request.json:
        print_document("doctor", {"hosts": [_diagnosis(host) for host in look.audit.hosts]})
        return
    out = console.make_console()
    out.print(console.with_sums(Group(*show_diagnosis(look.audit.hosts, look.ages))))
    _show_next(out, auditor, look, next_commands(look.audit.hosts, auditor.treatments))


def diagnosis_status(audit: FleetAudit) -> int:
    """Return the exit status of ``doctor``: 1 if a host could not be read, 3 for a known problem, else 0."""
    if any(host.status == "unread" for host in audit.hosts):
        return FAILED
    return DIFFERS if any(host.findings for host in audit.hosts) else AS_DESIRED


def explain_rule(name: str) -> None:
    """Print the documentation of the known problem ``name``. Raises ``InputError`` if no problem has this name."""
    from hostwright.audit.failures.catalogue import catalogue
    from hostwright.audit.failures.document import section

    rules = catalogue(roles_here())
    by_name = {rule.name: rule for rule in rules.rules}
    if name not in by_name:
        raise InputError(f"{name!r:.60} is not the name of a known problem; {suggestion(name, by_name)}", "--explain")
    out, text = console.make_console(), section(by_name[name], rules.commands)
    out.print(Markdown(text) if console.on_terminal(out) else Text(text.rstrip()))


def exit_status(audit: FleetAudit) -> int:
    """Return the exit status of ``audit``: 1 if a host or layer could not be read, 3 for any difference, else 0.

    An unreadable GPU layer does not count on a host without the driver, which is needed to read this layer.
    """
    if any(_is_unread(host) for host in audit.hosts):
        return FAILED
    return AS_DESIRED if all(host.status == "desired" for host in audit.hosts) else DIFFERS


def _is_unread(host: HostAudit) -> bool:
    without_driver = any(skipped.check == DRIVER_OF_CARDS for skipped in host.not_checked)
    layers = [layer.name for layer in host.layers if layer.status == "unread"]
    return host.status == "unread" or any(name != GPU_LAYER or not without_driver for name in layers)


def _show_next(out: Console, auditor: Auditor, look: AuditResult, commands: Mapping[Command, Sequence[str]]) -> None:
    desired = [host.host for host in look.audit.hosts if host.status == "desired"]
    for command, hosts in commands.items():
        if command.verb == "plan":
            show_next(out, command, hosts, auditor.targets, done=desired)
        else:
            show_led(out, command, hosts, auditor.targets)


def write_reports(outputs: Outputs, auditor: Auditor, look: AuditResult) -> int:
    """Write the reports that the options request. Return 1 if an audited host has no SBOM, else ``exit_status``."""
    outputs.write(look.audit, look.ages, auditor.memory, auditor.rules)
    wanted = sum(not host.sentence for host in look.audit.hosts) if outputs.cyclonedx else 0
    if wanted and outputs.write_sboms(auditor.sboms(look.audit)) < wanted:
        return FAILED
    return exit_status(look.audit)


def _diagnosis(host: HostAudit) -> dict[str, Any]:
    kept = ("host", "stack", "at", "status", "sentence", "findings", "not_checked")
    return {key: value for key, value in asdict(host).items() if key in kept}
