"""Prints hosts, their variables, and the result of checking a site."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.console import Group
from rich.text import Text

from hostwright.apply.journal.redaction import MIN_INLINE, Redactor, secrets_in
from hostwright.cli import console
from hostwright.cli.console import Hanging
from hostwright.cli.views.shared import print_document, warn
from hostwright.common.command import Command
from hostwright.common.errors import InputErrors, Mistakes
from hostwright.common.request import Request
from hostwright.common.secret import MASK, Secret
from hostwright.common.text import count, printable
from hostwright.fleet import Fleet, TargetHost, Targets
from hostwright.inventory import Host, definitions, fold, own_variables
from hostwright.inventory.model import ALL
from hostwright.inventory.patterns import headed
from hostwright.plan.roles.listing import strangers_noted
from hostwright.plan.roles.role import Role
from hostwright.plan.roles.sitecheck import SiteCheck, SiteRemark

OUTSIDE = "none: outside"  #: text in the column of stacks for a host that gets no stack
_REMARKS = 20  #: maximum number of printed mistakes in the inventory
_REDACTOR = Redactor(())  #: masker of passwords in URLs. Every other secret is a ``Secret`` object.


def show_variables(fleet: Fleet, targets: Targets, request: Request, *, why: bool = False) -> None:
    """Print the variables of hosts. With ``why``, add the file and line of each definition."""
    if request.json:
        rows: list[dict[str, object]]
        rows = [
            {"host": target.name, "role": role.name, "variables": asdict(target.variables[role.name])}
            for target in targets
            for role in target.roles
        ]
        if not request.roles:
            rows += [{"host": target.name, "role": "", "variables": _others(fleet, target)} for target in targets]
        print_document("vars", {"variables": rows})
        return
    alike: dict[tuple[str, ...], list[str]] = {}
    for target in targets:
        told = _variables(fleet, target, why=why, others=not request.roles)
        alike.setdefault((f"stack {target.stack.name}", *told), []).append(target.name)
    out = console.make_console()
    for (stack, *lines), names in alike.items():
        head, below = headed(names)
        for line in [title] if len(title := f"# {head}  {stack}") <= out.width else [f"# {head}", f"# {stack}"]:
            # a comment that the console wraps would not be valid YAML
            out.print(Text(line, style="bold"), soft_wrap=True)
        if below:
            out.print(Text(f"# {below}", style="dim"), soft_wrap=True)
        for line in lines:
            out.print(Text(printable(line), style="dim" if line.startswith("#") else ""), soft_wrap=True)


def _variables(fleet: Fleet, target: TargetHost, *, why: bool, others: bool) -> Iterator[str]:
    """Yield a host's variables as YAML. ``why`` adds definitions; ``others`` adds variables that no role reads."""
    for role in target.roles:
        yield from _of_role(target, role, why=why)
    rest = _others(fleet, target) if others else {}
    if rest:
        yield "# no role reads these:"
    for name, value in rest.items():
        line = _as_yaml(name, value)
        # a user could paste the mask as a value if the line were not a comment
        yield f"# {line}" if MASK in line else line
        for definition in reversed(target.host.explain_variable(name) if why else ()):
            yield f"#     {_REDACTOR.text(str(definition))}"


def _others(fleet: Fleet, target: TargetHost) -> dict[str, object]:
    """Return a host's variables that no role reads, as JSON values with masked secrets."""
    own = own_variables(target.host, {role.name: role.variables for role in fleet.roles})
    return {name: _REDACTOR.clean(value.value) for name, value in own.items()}


def _of_role(target: TargetHost, role: Role, *, why: bool) -> Iterator[str]:
    for key, value in asdict(target.variables[role.name]).items():
        yield _as_yaml(f"{role.name}_{key}", value)
        if why:
            for definition in reversed(definitions(target.host, role.name, key, role.variables)):
                yield f"#     {definition}"


def _as_yaml(name: str, value: object) -> str:
    """Return the variable ``name`` as a YAML line. A secret value is masked.

    >>> _as_yaml("base_umask", "022"), _as_yaml("proxy_listen", ("443", "[::]:443")), _as_yaml("base_keep", True)
    ("base_umask: '022'", "proxy_listen: ['443', '[::]:443']", 'base_keep: true')
    """
    if isinstance(value, Secret):
        return f"# {name}: a secret, not shown"
    # PyYAML's default style None would write a plain value in braces
    flow = None if isinstance(value, dict | list | tuple) else False
    text = yaml.dump({name: value}, Dumper=_Dumper, default_flow_style=flow, width=float("inf"), allow_unicode=True)
    return text.rstrip("\n")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _: Any) -> bool:
        return True


_Dumper.add_representer(tuple, lambda dumper, value: dumper.represent_list(value))
_Dumper.add_multi_representer(object, lambda dumper, value: dumper.represent_str(str(value)))


def show_hosts(fleet: Fleet, chosen: Sequence[Host], outside: Sequence[str], *, as_json: bool) -> None:
    """Print the hosts ``chosen``, including unusable ones. ``outside`` are hosts that the site's settings exclude."""
    rows = [(host, fleet.stack_name(host)) for host in chosen]
    if as_json:
        secrets = [secret.reveal() for secret in secrets_in(chosen)]
        print_document("hosts", {"hosts": [_listed(fleet, host, stack, secrets, outside) for host, stack in rows]})
    else:
        out = console.make_console()
        shown = [_cells(host, OUTSIDE if host.name in outside else stack) for host, stack in rows]
        lines = console.in_columns(("host", "address", "stack", "groups"), shown, out.width)
        # one text prints faster than a group of thousands of lines
        out.print(Group(*lines) if out.is_terminal else Text("\n").join(lines))
        out.print(Text(f"{count(len(rows), 'host')}: {fold([host.name for host in chosen])}", style="bold"))


def _cells(host: Host, stack: str) -> list[Text]:
    address = "this machine" if host.local else host.address or host.name
    groups = ", ".join(group for group in host.groups if group != ALL)
    return [Text(printable(text)) for text in (host.name, address, stack, groups)]


def _listed(fleet: Fleet, host: Host, stack: str, secrets: Sequence[str], outside: Sequence[str]) -> dict[str, object]:
    """Return ``host`` as JSON values. Values that the inventory encrypts (``secrets``) are masked. ``None`` means that
    ``ssh_config`` defines the value, or that the roles of an unusable host are unknown.
    """

    def shown(value: str | int | None) -> str | int | None:
        text = str(value)
        return MASK if any(each == text or (len(each) >= MIN_INLINE and each in text) for each in secrets) else value

    roles = None
    with Mistakes():
        roles = [role.name for role in fleet.target(host).roles]
    return {
        "host": host.name,
        "address": shown(host.address),
        "port": shown(host.port),
        "user": shown(host.user),
        "key": shown(host.key_file),
        "jump": shown(host.proxy_jump),
        "known_hosts": shown(host.known_hosts),
        "connection": host.connection,
        "stack": stack,
        "outside": host.name in outside,
        "roles": roles,
        "groups": list(host.groups),
    }


def show_remarks(fleet: Fleet, chosen: Sequence[Host]) -> None:
    """Print, on standard error, hosts' mistakes that prevent provisioning, and variables that no role reads."""
    mistakes = Mistakes()
    for host in chosen:
        with mistakes:
            if host.mistakes:
                raise InputErrors(list(host.mistakes))
            fleet.target(host)
    for mistake in mistakes.found[:_REMARKS]:
        warn(f"cannot be provisioned: {mistake}")
    if len(mistakes.found) > _REMARKS:
        warn(f"and {len(mistakes.found) - _REMARKS} further mistakes; {Command('hosts', strict=True)} shows all")
    for note in strangers_noted(chosen, fleet.binder):
        warn(note)


def show_check(checked: SiteCheck) -> None:
    """Print a line for each mistake in a site, in the format that editors and CI parse, then a summary."""
    _show_remarks(checked.notes, "note: ", "yellow")
    _show_remarks(checked.unread, "could not be read: ", "bold red")
    _show_remarks(checked.mistakes, "", "bold red")
    own = (count(len(names), noun) for names, noun in ((checked.stacks, "stack"), (checked.roles, "role")))
    parts = ", ".join([count(checked.hosts, "host"), *own]) + " of its own"
    good = not (checked.mistakes or checked.unread)
    _line(f"{checked.site}: {_verdict(checked)} ({parts})", "green" if good else "bold red")


def _verdict(checked: SiteCheck) -> str:
    if checked.mistakes:
        return count(len(checked.mistakes), "mistake")
    return f"{count(len(checked.unread), 'file')} could not be read" if checked.unread else "no mistakes"


def _show_remarks(remarks: Iterable[SiteRemark], before: str, style: str) -> None:
    for remark in remarks:
        _line(f"{before}{remark}", style)


def _line(text: str, style: str) -> None:
    out = console.make_console()
    out.print(Group(Hanging(printable(text), style=style)), soft_wrap=not out.is_terminal)


def show_schemas(of_files: Mapping[str, object], of_documents: Mapping[str, Path]) -> None:
    """Print the names of all schemas: schemas of files that users write, and schemas of ``--json`` documents."""
    out = console.make_console()
    out.print(Text("files that you write:", style="bold"))
    for name in of_files:
        out.print(Text(f"  {name}"))
    out.print(Text("output of verbs with --json:", style="bold"))
    out.print(console.Listed(f"  {', '.join(of_documents)}"))
