"""``invoke provision``: hosts brought to their stack, with a view of it as it happens."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from hostwright import console, locks
from hostwright.applying import Host, Outcome, Settings
from hostwright.cli.call import AS_DESIRED, DIFFERS, FAILED, Call, Connections
from hostwright.cli.planning import plan
from hostwright.cli.recording import Recording, recorded
from hostwright.cli.showing import errors_json, show_errors, show_stand_ins
from hostwright.errors import InputError
from hostwright.events import HostEnded, Note
from hostwright.fleet import Fleet, Member
from hostwright.journal import state_root, to_resume
from hostwright.limits import read_limits
from hostwright.model import Plan
from hostwright.rollout import Results, roll_out
from hostwright.stack import Artifact

STOPPING = (
    "stopping: what runs on the hosts is waited for, nothing new is begun. "
    "Once more Ctrl-C leaves at once; the jobs go on there, and `invoke provision --resume` re-attaches to them."
)
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
    limits = read_limits(len(members), canary=call["canary"], batch=call["batch"], max_fail=call["max_fail"])
    saved = _saved_plans(call["plan"], members)
    connections = Connections(call.password())
    with recorded(call, "provision", fleet, members, connections) as recording:
        stopping = threading.Event()
        by_name = {member.name: member for member in members}
        work = _Work(call, by_name, saved, fleet.store.locate, connections, recording, stopping)
        results = roll_out(
            [member.name for member in members],
            work,
            limits=limits,
            emit=recording.emit,
            stop=connections.close,
            gently=lambda: _stop_gently(stopping, recording),
            silent=recording.silence.hosts,
        )
        status = _status(results)
        recording.journal.end(status, sentence=results.stopped_because)
    _report(call, recording.run.id, members, results)
    return status


@dataclass(frozen=True)
class _Work:
    """What is done with one host, given its name."""

    call: Call
    members: Mapping[str, Member]
    saved: Mapping[str, Plan]
    locate: Callable[[Artifact], Path]
    connections: Connections
    recording: Recording
    stopping: threading.Event

    def __call__(self, name: str) -> Outcome:
        member = self.members[name]
        host = Host(lambda: self.connections.connect(member), member.desired, self._settings(member))
        try:
            outcome = host.converge(self.saved.get(name))
        finally:
            host.close()
        self.recording.emit(HostEnded(name, outcome.word))
        return outcome

    def _settings(self, member: Member) -> Settings:
        return Settings(
            run=self.recording.run,
            emit=self.recording.emit,
            locate=self.locate,
            password=self.connections.password(member),
            holder=locks.holder(self.recording.run.id, member.name, datetime.now(UTC)),
            reboot_timeout_s=member.reboot_timeout_s,
            allow_reboot=not self.call["no_reboot"],
            direct=member.direct,
            hooks=member.hooks,
            drain=self.call["drain"],
            force=self.call["force"],
            stopping=self.stopping.is_set,
        )


def _stop_gently(stopping: threading.Event, recording: Recording) -> None:
    stopping.set()
    recording.emit(Note("", STOPPING))


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


def _status(results: Results[Outcome]) -> int:
    if results.errors or results.untouched:
        return FAILED
    return DIFFERS if any(outcome.word == "pending" for outcome in results.values) else AS_DESIRED


def _report(call: Call, run: str, members: tuple[Member, ...], results: Results[Outcome]) -> None:
    if call["json"]:
        print(json.dumps(_document(run, results)))
        return
    out = console.make_console()
    out.print(console.summary(results.values, results.errors, results.untouched))
    show_errors(results.errors)
    if results.stopped_because:
        sentence = f"{results.stopped_because}. `invoke provision --resume` goes on with what is left"
        console.make_console(stderr=True).print(Text(console.printable(sentence), style="bold red"))
    show_stand_ins(members, out)
    out.print(Text(f"run {run}: `invoke runs.show --run {run}` shows every step", style="dim"))


def _document(run: str, results: Results[Outcome]) -> dict[str, Any]:
    return {
        "run": run,
        "hosts": [
            {
                "host": outcome.host,
                "result": outcome.word,
                "changed": outcome.changed,
                "reboots": outcome.reboots,
                "plan": outcome.plan.to_json(),
                "left": outcome.left.to_json() if outcome.left else None,
                "roles": [asdict(result) for result in outcome.results],
            }
            for outcome in results.values
        ],
        "errors": errors_json(results.errors),
        "untouched": list(results.untouched),
        "stopped_because": results.stopped_because,
    }


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
