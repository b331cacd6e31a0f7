"""``invoke vars``, ``invoke hosts``, ``invoke mirror``: what is known and what is kept, without a host being asked."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, Call
from hostwright.fleet import Member
from hostwright.plan.role import Role


def variables(call: Call) -> int:
    """``invoke vars``."""
    members = call.members(call.fleet())
    rows = [
        {"host": member.name, "role": role.name, "variables": asdict(member.variables[role.name])}
        for member in members
        for role in member.roles
    ]
    if call["json"]:
        print(json.dumps(rows, default=str))
        return AS_DESIRED
    out = console.make_console()
    for member in members:
        out.print(Text(f"{member.name}  stack {member.stack.name}", style="bold"))
        for role in member.roles:
            _show_variables(out, member, role, why=call["why"])
    return AS_DESIRED


def _show_variables(out: Console, member: Member, role: Role, *, why: bool) -> None:
    for key, value in asdict(member.variables[role.name]).items():
        out.print(Text(f"  {role.name}_{key} = {value!r}"))
        if why:
            for definition in reversed(member.host.explain(role.name, key, role.variables)):
                out.print(Text(f"      {definition}", style="dim"))


def hosts(call: Call) -> int:
    """``invoke hosts``."""
    from ClusterShell.NodeSet import NodeSet

    members = call.members(call.fleet())
    if call["json"]:
        rows = [
            {"host": m.name, "address": m.host.address, "stack": m.stack.name, "groups": list(m.host.groups)}
            for m in members
        ]
        print(json.dumps(rows))
        return AS_DESIRED
    out = console.make_console()
    out.print(
        Text(
            f"{console.count(len(members), 'host')}: {NodeSet.fromlist([member.name for member in members])}",
            style="bold",
        )
    )
    for member in members:
        groups = ", ".join(member.host.groups)
        out.print(Text(f"  {member.name}  {member.host.address or member.name}  {member.stack.name}  {groups}"))
    return AS_DESIRED


def mirror(call: Call) -> int:
    """``invoke mirror``."""
    from hostwright.stack.mirroring import mirror_stack

    fleet = call.fleet()
    source = Path(call["from_"]) if call["from_"] else None
    mirror_stack(fleet.stack(call["stack"]), fleet.store, source, console.make_console())
    return AS_DESIRED
