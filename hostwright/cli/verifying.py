"""``invoke verify``: every layer checked by what it does."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from hostwright.apply.events import HostEnded
from hostwright.apply.rollout.rollout import Results, on_each, result_of
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, FAILED, Call, Connections
from hostwright.cli.recording import Recording, recorded
from hostwright.cli.showing import errors_json, show_errors, show_stand_ins
from hostwright.verify.verifying import Check, Verdict, check_layers


def verify(call: Call) -> int:
    """``invoke verify``."""
    fleet = call.fleet()
    members = call.members(fleet)
    connections = Connections(call.password())
    by_name = {member.name: member for member in members}

    with recorded(call, "verify", fleet, members, connections, shown=False) as recording:

        def one(name: str) -> Verdict:
            member = by_name[name]
            found = connections.look(member, recording.emit)
            checks = check_layers(member, fleet.path, call.options.get("var", ()), connections.password(member))
            return Verdict(name, found, checks)

        results = on_each(tuple(by_name), one, stop=connections.close)
        _record(recording, results)
        good = not results.errors and all(verdict.passed for verdict in results.values)
        recording.journal.end(AS_DESIRED if good else FAILED)
    if call["json"]:
        print(
            json.dumps(
                {
                    "hosts": [
                        {
                            "host": verdict.host,
                            "passed": verdict.passed,
                            "failed_roles": verdict.failed_roles,
                            "plan": verdict.plan.to_json(),
                            "checks": [asdict(check) for check in verdict.checks],
                        }
                        for verdict in results.values
                    ],
                    "errors": errors_json(results.errors),
                }
            )
        )
    else:
        out = console.make_console()
        for verdict in results.values:
            _show_verdict(out, verdict)
        show_errors(results.errors)
        show_stand_ins(members, out)
    return AS_DESIRED if good else FAILED


def _record(recording: Recording, results: Results[Verdict]) -> None:
    """What became of each host, for the journal: a host that does not pass has failed."""
    for verdict in results.values:
        failed = ", ".join([*verdict.failed_roles, *(role.role for role in verdict.plan.roles)])
        recording.emit(
            HostEnded(verdict.host, "as desired") if verdict.passed else HostEnded(verdict.host, "failed", failed)
        )
    for error in results.errors:
        recording.emit(HostEnded(error.host, result_of(error), error.sentence))


def _show_verdict(out: Console, verdict: Verdict) -> None:
    out.print(Text(verdict.host, style="bold"))
    roles: dict[str, list[Check]] = {}
    for check in verdict.checks:
        roles.setdefault(check.role, []).append(check)
    for role, checks in roles.items():
        bad = [check for check in checks if not check.passed]
        seconds = sum(check.duration_s for check in checks)
        mark = Text("✗", style="red") if bad or role in verdict.failed_roles else Text("✓", style="green")
        out.print(
            Text.assemble("  ", mark, f" {role}: {len(checks) - len(bad)} of {len(checks)} checks  {seconds:.1f} s")
        )
        for check in bad:
            out.print(
                Text(f"      {check.sentence.splitlines()[0]}\n        {console.printable(check.why)}", style="red")
            )
    if not verdict.plan.empty:
        out.print(console.show_plan(verdict.plan))
