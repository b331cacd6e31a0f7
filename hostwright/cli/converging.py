"""What the verbs that change hosts have in common: a run over them, recorded and shown, and what came of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from hostwright.apply.events import Emit, HostEnded, Note
from hostwright.apply.host.applying import Host
from hostwright.apply.host.outcome import Outcome, Settings
from hostwright.apply.host.variables import read_apply_variables
from hostwright.apply.journal import state_root
from hostwright.apply.locking import setaside
from hostwright.apply.rollout.limits import read_limits
from hostwright.apply.rollout.rollout import Results, roll_out
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, DIFFERS, FAILED, Call, Connections
from hostwright.cli.recording import recorded
from hostwright.cli.showing import errors_json, show_errors, show_stand_ins
from hostwright.common.errors import Locked
from hostwright.fleet import Fleet, Member
from hostwright.plan import locks
from hostwright.plan.model import Plan
from hostwright.plan.planning import Desired
from hostwright.plan.release import Run
from hostwright.stack import stackstore

STOPPING = (
    "stopping: what runs on the hosts is waited for, nothing new is begun. "
    "Once more Ctrl-C leaves at once; the jobs go on there, and %s re-attaches to them."
)
#: what goes on with an interrupted run of a verb
AGAIN = {"provision": "`invoke provision --resume`"}
THE_SAME = "the same command again"


def wanted(member: Member) -> Desired:
    """What a host shall be: all that its stack and roles want."""
    return member.desired


def stays(_: Member) -> bool:
    """What Hostwright keeps on a host stays there."""
    return False


def converge(
    call: Call,
    verb: str,
    fleet: Fleet,
    members: Sequence[Member],
    *,
    desired: Callable[[Member], Desired] = wanted,
    departs: Callable[[Member], bool] = stays,
    saved: Mapping[str, Plan] | None = None,
) -> int:
    """Bring hosts to what ``desired`` says of each, as one run; the exit status.

    A host of which ``desired`` raises a ``HostError`` is not touched, and failed. ``departs``: ``Settings.depart``.
    ``saved`` are plans shown before: a host of which one is stale is not touched. ``call`` has the options of
    ``invoke provision`` that bound a run; those that it lacks are as when nobody gives them.
    """
    limits = read_limits(
        len(members),
        **{name: call.options.get(name, "") for name in ("canary", "batch", "max_fail")},
    )
    connections = Connections(call.password())
    with recorded(call, verb, fleet, members, connections) as recording:
        stopping = threading.Event()
        work = Work(
            call, {one.name: one for one in members}, fleet, connections, recording.run, recording.emit, stopping,
            desired, saved or {}, departs,
        )  # fmt: skip
        results = roll_out(
            [member.name for member in members],
            work,
            limits=limits,
            emit=recording.emit,
            stop=connections.close,
            gently=lambda: stop_gently(stopping, recording.emit, verb),
            silent=recording.silence.hosts,
        )
        status = status_of(results)
        recording.journal.end(status, sentence=results.stopped_because)
    report(call, verb, recording.run.id, members, results)
    return status


@dataclass(frozen=True)
class Work:
    """What is done with one host, given its name."""

    call: Call
    members: Mapping[str, Member]
    fleet: Fleet
    connections: Connections
    run: Run
    emit: Emit
    stopping: threading.Event
    desired: Callable[[Member], Desired] = wanted
    saved: Mapping[str, Plan] = field(default_factory=dict)
    departs: Callable[[Member], bool] = stays

    def __call__(self, name: str) -> Outcome:
        """One host, from its connection to its end. Raises ``Locked`` for one that is set aside on this machine."""
        if refused := setaside.refusal(state_root(), self.fleet.path, name, datetime.now(UTC)):
            raise Locked(name, refused)
        host = self.host(self.members[name])
        try:
            outcome = host.converge(self.saved.get(name))
        finally:
            host.close()
        self.emit(HostEnded(name, outcome.word))
        return outcome

    def host(self, member: Member) -> Host:
        """A host to be brought to what is desired of it; whoever asks for it closes it."""
        return Host(lambda: self.connections.connect(member), self.desired(member), self.settings(member))

    def settings(self, member: Member) -> Settings:
        """What applying needs to know, from the options and the inventory."""
        variables = read_apply_variables(member.host)
        return Settings(
            run=self.run,
            emit=self.emit,
            locate=self.fleet.store.locate,
            holder=locks.holder(self.run.id, member.name, datetime.now(UTC)),
            reboot_timeout_s=variables.reboot_timeout_s,
            allow_reboot=not self.call.options.get("no_reboot"),
            direct=variables.direct,
            hooks=variables.hooks,
            drain=bool(self.call.options.get("drain")),
            force=bool(self.call.options.get("force")),
            depart=self.departs(member),
            keep=stackstore.keep,
            stopping=self.stopping.is_set,
        )


def stop_gently(stopping: threading.Event, emit: Emit, verb: str) -> None:
    """Begin nothing new, and say so."""
    stopping.set()
    emit(Note("", STOPPING % AGAIN.get(verb, THE_SAME)))


def status_of(results: Results[Outcome]) -> int:
    """The exit status of a run: 0 as desired, 1 something failed, 3 something is left to do."""
    if results.errors or results.untouched:
        return FAILED
    return DIFFERS if any(outcome.word == "pending" for outcome in results.values) else AS_DESIRED


def report(call: Call, verb: str, run: str, members: Sequence[Member], results: Results[Outcome]) -> None:
    """Show what came of each host."""
    if call["json"]:
        print(json.dumps(_document(run, results)))
        return
    out = console.make_console()
    out.print(console.summary(results.values, results.errors, results.untouched))
    show_errors(results.errors)
    if results.stopped_because:
        sentence = f"{results.stopped_because}. To go on with what is left: {AGAIN.get(verb, THE_SAME)}"
        console.make_console(stderr=True).print(Text(console.printable(sentence), style="bold red"))
    show_stand_ins(tuple(members), out)
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
