"""``invoke plan``: what stands between hosts and their stack."""

from __future__ import annotations

import json
from pathlib import Path

from hostwright import console
from hostwright.cli.call import AS_DESIRED, DIFFERS, FAILED, Call, Connections
from hostwright.cli.showing import errors_json, show_errors, show_stand_ins
from hostwright.fleet import Member
from hostwright.model import Plan
from hostwright.rollout import Results, on_each
from hostwright.secret import Secret


def plan(call: Call) -> int:
    """``invoke plan``."""
    members = call.members(call.fleet())
    results = _look_at_all(members, call.password())
    if call.options.get("out"):
        saved = {plan.host: plan.to_json() for plan in results.values}
        Path(call["out"]).write_text(json.dumps(saved, indent=2) + "\n", encoding="utf-8")
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


def _look_at_all(members: tuple[Member, ...], password: Secret | None) -> Results[Plan]:
    connections = Connections(password)
    by_name = {member.name: member for member in members}
    return on_each(tuple(by_name), lambda name: connections.look(by_name[name]), stop=connections.close)
