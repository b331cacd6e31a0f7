"""``invoke provision``: hosts brought to their stack, with a view of it as it happens."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import asdict
from pathlib import Path

from hostwright import applying, console
from hostwright.cli.call import AS_DESIRED, DIFFERS, FAILED, Call, Connections
from hostwright.cli.planning import plan
from hostwright.cli.showing import errors_json, show_errors, show_stand_ins
from hostwright.errors import InputError
from hostwright.fleet import Member
from hostwright.live import LiveTable, Plain
from hostwright.model import Plan
from hostwright.rollout import Results, on_each


def provision(call: Call) -> int:
    """``invoke provision``."""
    if call["check"]:
        return plan(call)
    fleet = call.fleet()
    members = call.members(fleet)
    saved = _saved_plans(call["plan"], members)
    connections = Connections(call.password())
    by_name = {member.name: member for member in members}
    run_id = time.strftime("%Y%m%dt%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)
    view = _view(call, members)

    def one(name: str) -> applying.Outcome:
        member = by_name[name]
        settings = applying.Settings(
            run_id=run_id,
            emit=view,
            locate=fleet.store.locate,
            password=connections.password(member),
            allow_reboot=not call["no_reboot"],
            direct=member.direct,
        )
        host = applying.Host(connections.connect(member), lambda: connections.connect(member), member.desired, settings)
        try:
            return host.converge(saved.get(name))
        finally:
            host.close()

    with view:
        results = on_each(tuple(by_name), one, stop=connections.close)
    return _report_provision(call, members, results)


def _report_provision(call: Call, members: tuple[Member, ...], results: Results[applying.Outcome]) -> int:
    pending = any(outcome.left is not None and not outcome.left.empty for outcome in results.values)
    if call["json"]:
        document = {
            "hosts": [
                {
                    "host": outcome.host,
                    "changed": outcome.changed,
                    "reboots": outcome.reboots,
                    "plan": outcome.plan.to_json(),
                    "left": outcome.left.to_json() if outcome.left else None,
                    "roles": [asdict(result) for result in outcome.results],
                }
                for outcome in results.values
            ],
            "errors": errors_json(results.errors),
        }
        print(json.dumps(document))
    else:
        out = console.make_console()
        out.print(console.summary(results.values, results.errors))
        show_errors(results.errors)
        show_stand_ins(members, out)
    if results.errors:
        return FAILED
    return DIFFERS if pending else AS_DESIRED


def _saved_plans(path: str, members: tuple[Member, ...]) -> dict[str, Plan]:
    """The plans of a file made by ``plan --out``; each selected host must be in it."""
    if not path:
        return {}
    try:
        data = json.loads(Path(path).read_text("utf-8"))
        plans = {name: Plan.from_json(one) for name, one in data.items()}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("is not a plan that `invoke plan --out` saved", path) from error
    missing = [member.name for member in members if member.name not in plans]
    if missing:
        raise InputError(f"holds no plan for {', '.join(missing)}", path)
    return plans


def _view(call: Call, members: tuple[Member, ...]) -> LiveTable | Plain:
    """A live table in a terminal, plain lines elsewhere; on standard error when standard output is for JSON."""
    out = console.make_console(stderr=bool(call["json"]))
    if out.is_terminal and not call["json"]:
        roles = list(dict.fromkeys(role.name for member in members for role in member.roles))
        return LiveTable(out, [member.name for member in members], roles)
    return Plain(out)
