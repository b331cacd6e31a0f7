"""``invoke plan``: what stands between hosts and their stack."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hostwright.apply import savedplans
from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, DIFFERS, FAILED, Call, Connections
from hostwright.cli.showing import errors_json, show_errors, show_stand_ins
from hostwright.fleet import Member
from hostwright.plan.model import Plan
from hostwright.plan.planning import Desired


def plan(call: Call) -> int:
    """``invoke plan``."""
    return show_plans(call, call.members(call.fleet()))


def show_plans(
    call: Call, members: tuple[Member, ...], *, desired: Callable[[Member], Desired] = lambda one: one.desired
) -> int:
    """Look at hosts and show what stands between them and what is ``desired`` of each; the exit status."""
    results = _look_at_all(members, Connections(call.password()), desired)
    if call.options.get("out"):
        savedplans.save(Path(call["out"]), results.values)
    if call["json"]:
        print(json.dumps({"plans": [plan.to_json() for plan in results.values], "errors": errors_json(results.errors)}))
    else:
        out = console.make_console()
        for one in results.values:
            out.print(console.show_plan(one))
        show_errors(results.errors)
        show_stand_ins(members, out)
    if results.errors:
        return FAILED
    return AS_DESIRED if all(one.empty for one in results.values) else DIFFERS


def _look_at_all(
    members: tuple[Member, ...], connections: Connections, desired: Callable[[Member], Desired]
) -> Results[Plan]:
    by_name = {member.name: member for member in members}

    def look(name: str) -> Plan:
        return connections.look(by_name[name], desired=desired(by_name[name]))

    return on_each(tuple(by_name), look, stop=connections.close)
