"""``invoke provision``: hosts brought to their stack, with a view of it as it happens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.text import Text

from hostwright.apply import savedplans
from hostwright.apply.journal import state_root, to_resume
from hostwright.cli import console
from hostwright.cli.call import Call
from hostwright.cli.converging import converge
from hostwright.cli.planning import plan
from hostwright.common.errors import InputError
from hostwright.fleet import Fleet, Member
from hostwright.plan.model import Plan

#: What ``--resume`` takes from the run that it goes on with. The inventory is the one in hand.
RESUMED = ("var", "roles", "no_reboot", "drain", "force", "canary", "batch", "max_fail", "accept_new")


def provision(call: Call) -> int:
    """``invoke provision``."""
    if call["check"]:
        return plan(call)
    fleet = call.fleet()
    if call["resume"]:
        call = _resumed(call, fleet)
        fleet = call.fleet()
    members = call.members(fleet)
    return converge(call, "provision", fleet, members, saved=_saved_plans(call["plan"], members))


def _resumed(call: Call, fleet: Fleet) -> Call:
    """The call with the hosts that the last run did not bring to an end, and its options where none are given now."""
    if call["hosts"]:
        raise InputError("--resume takes the hosts from the last run; give either it or --hosts", "--resume")
    last = to_resume(state_root(), fleet.path)
    gone = [host for host in last.hosts if host not in fleet.inventory.hosts]
    if gone:
        raise InputError(f"{', '.join(gone)} of the run {last.run} are not in the inventory any more", "--resume")
    missing = [name for name in last.masked if name in RESUMED and not call.options.get(name)]
    if missing:
        raise InputError(
            f"the run {last.run} was given secrets with --{missing[0].replace('_', '-')}, which are not recorded: "
            "give them again",
            "--resume",
        )
    taken = {name: last.options[name] for name in RESUMED if name in last.options and not call.options.get(name)}
    note = f"going on with {last.run}: {', '.join(last.hosts)}"
    console.make_console(stderr=True).print(Text(console.printable(note)))
    return replace(call, options={**call.options, **taken, "hosts": ",".join(last.hosts)})


def _saved_plans(path: str, members: tuple[Member, ...]) -> dict[str, Plan]:
    """The plans of a file made by ``plan --out``; each selected host must be in it."""
    if not path:
        return {}
    plans = savedplans.load(Path(path))
    missing = [member.name for member in members if member.name not in plans]
    if missing:
        raise InputError(f"holds no plan for {', '.join(missing)}", path)
    return plans
