"""``invoke vars``, ``invoke hosts``, ``invoke mirror``: what is known and kept here, without contacting a host."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hostwright.apply.host.outcome import AS_DESIRED
from hostwright.cli import console
from hostwright.cli.arguments import Selection
from hostwright.cli.opening import members_of, open_fleet
from hostwright.cli.transfer_view import make_progress, summary
from hostwright.common.text import count
from hostwright.fleet import Member
from hostwright.inventory import definitions, fold
from hostwright.plan.roles.role import Role


def variables(selection: Selection, *, why: bool = False, as_json: bool = False) -> int:
    """``invoke vars``; ``why``: with file and line of every definition."""
    members = members_of(open_fleet(selection), selection)
    if as_json:
        rows = [
            {"host": member.name, "role": role.name, "variables": asdict(member.variables[role.name])}
            for member in members
            for role in member.roles
        ]
        print(json.dumps(rows, default=str))
        return AS_DESIRED
    out = console.make_console()
    for member in members:
        out.print(Text(f"{member.name}  stack {member.stack.name}", style="bold"))
        for role in member.roles:
            _show_variables(out, member, role, why=why)
    return AS_DESIRED


def _show_variables(out: Console, member: Member, role: Role, *, why: bool) -> None:
    for key, value in asdict(member.variables[role.name]).items():
        out.print(Text(f"  {role.name}_{key} = {value!r}"))
        if why:
            for definition in reversed(definitions(member.host, role.name, key, role.variables)):
                out.print(Text(f"      {definition}", style="dim"))


def hosts(selection: Selection, *, as_json: bool = False) -> int:
    """``invoke hosts``."""
    members = members_of(open_fleet(selection), selection)
    if as_json:
        rows = [
            {"host": m.name, "address": m.host.address, "stack": m.stack.name, "groups": list(m.host.groups)}
            for m in members
        ]
        print(json.dumps(rows))
        return AS_DESIRED
    out = console.make_console()
    folded = fold([member.name for member in members])
    out.print(Text(f"{count(len(members), 'host')}: {folded}", style="bold"))
    for member in members:
        groups = ", ".join(member.host.groups)
        out.print(Text(f"  {member.name}  {member.host.address or member.name}  {member.stack.name}  {groups}"))
    return AS_DESIRED


def mirror(selection: Selection, *, stack: str, source: str = "") -> int:
    """``invoke mirror``; ``source`` names a directory in which files are looked for first."""
    fleet = open_fleet(selection)
    out = console.make_console()
    with make_progress(out) as progress:
        done = fleet.mirror(stack, Path(source) if source else None, progress=progress)
    out.print(summary(done))
    return AS_DESIRED
