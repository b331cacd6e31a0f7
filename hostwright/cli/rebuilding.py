"""``invoke rebuild``: hosts from whatever state they are in to verified and back in service, each phase timed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, cast

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.apply.events import Emit, Event, HostEnded, Note
from hostwright.apply.journal import state_root
from hostwright.apply.locking import setaside
from hostwright.apply.rollout.limits import read_limits
from hostwright.apply.rollout.rollout import Results, on_each, result_of, roll_out
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, DIFFERS, FAILED, Call, Connections
from hostwright.cli.converging import Work, stop_gently
from hostwright.cli.recording import recorded
from hostwright.cli.showing import errors_json, show_errors, show_stand_ins
from hostwright.common.durations import Clock
from hostwright.common.errors import HostError, HostKeyMismatch, HostwrightError, InputError, Locked
from hostwright.fleet import Fleet, Member
from hostwright.inventory.patterns import fold
from hostwright.plan.locks import read_duration
from hostwright.plan.release import Run
from hostwright.rebuild import report
from hostwright.rebuild.bmc import Controller, Opener
from hostwright.rebuild.carrying import HostRebuild
from hostwright.rebuild.install.installing import Installer
from hostwright.rebuild.install.serving import SeedServers
from hostwright.rebuild.install.sources import Sources, confirm
from hostwright.rebuild.records import Records
from hostwright.rebuild.tools import Tools
from hostwright.rebuild.values import STARTS, Outcome, Rebuild, Start
from hostwright.rebuild.ways.diagnosis import Reinstall
from hostwright.rebuild.ways.looking import Ways
from hostwright.rebuild.ways.means import read_means
from hostwright.rebuild.ways.ways import Decision
from hostwright.transport.identity.trusting import known, replace
from hostwright.verify.verifying import Check, check_layers

#: what became of a host, in the words of the journal (``events.RESULTS``)
ENDED: Mapping[Outcome, str] = {
    "rebuilt": "changed",
    "as desired": "as desired",
    "failed": "failed",
    "handed over": "failed",
}
STYLES: Mapping[Outcome, str] = {"rebuilt": "green", "as desired": "green", "failed": "red", "handed over": "yellow"}


def rebuild(call: Call) -> int:
    """``invoke rebuild``."""
    if call["report"]:
        return _report(call)
    start = _start(call["from_"])
    fleet = call.fleet()
    members = call.members(fleet)
    limits = read_limits(len(members), canary=call["canary"], batch=call["batch"], max_fail=call["max_fail"])
    connections = Connections(call.password())
    stopping, records = threading.Event(), Records(state_root(), fleet.path)
    with ExitStack() as stack:
        servers = stack.enter_context(SeedServers())
        if call["check"]:
            looking = _Run(call, fleet, connections, Run(""), _nobody_hears, stopping, servers, records)
            return _checked(call, *looking.decide(members, start)[1:])
        recording = stack.enter_context(recorded(call, "rebuild", fleet, members, connections, shown=False))
        run = _Run(call, fleet, connections, recording.run, recording.emit, stopping, servers, records)
        rebuilds, decisions, missed = run.decide(members, start)
        with recording.view():
            results = roll_out(
                tuple(decisions),
                lambda name: run.carry_out(rebuilds[name], decisions[name]),
                limits=limits,
                emit=recording.emit,
                stop=connections.close,
                gently=lambda: stop_gently(stopping, recording.emit, "rebuild"),
                silent=recording.silence.hosts,
                result=lambda done: ENDED[done.outcome],
            )
        errors = (*missed, *results.errors)
        bad = errors or results.untouched or any(ENDED[one.outcome] == "failed" for one in results.values)
        recording.journal.end(FAILED if bad else AS_DESIRED, sentence=results.stopped_because)
    _show(call, members, recording.run.id, decisions, results, errors)
    return FAILED if bad else AS_DESIRED


def _nobody_hears(_event: Event) -> None:
    """Where nothing is done, nothing is told on the way."""


@dataclass(frozen=True)
class _Run:
    """What the rebuilds of one run share."""

    call: Call
    fleet: Fleet
    connections: Connections
    run: Run
    emit: Emit
    stopping: threading.Event
    servers: SeedServers
    records: Records

    def decide(
        self, members: Sequence[Member], start: Start | None
    ) -> tuple[dict[str, HostRebuild], dict[str, Decision], tuple[HostError, ...]]:
        """Look at all hosts, and show what is going to be done with each; nothing is changed."""
        rebuilds = {member.name: HostRebuild(self.tools(member), start) for member in members}
        looked = on_each(tuple(rebuilds), lambda name: self.diagnose(rebuilds[name]), stop=self.connections.close)
        decisions = dict(looked.values)
        for error in looked.errors:
            self.emit(HostEnded(error.host, result_of(error), error.sentence))
        if not self.call["json"] and decisions:
            console.make_console().print(_decisions(decisions))
        return rebuilds, decisions, looked.errors

    def tools(self, member: Member) -> Tools:
        """What the rebuild of one host needs."""
        by_name = {member.name: member}
        work = Work(self.call, by_name, self.fleet, self.connections, self.run, self.emit, self.stopping)
        ways = _ways(member)
        return Tools(
            member=member,
            connect=lambda: self.connections.connect(member),
            settings=work.settings(member),
            ways=ways,
            install=Installer(
                member,
                lambda: self.connections.connect(member),
                ways.open_bmc,
                self.servers,
                self.run.id,
                self.emit,
                self.stopping.is_set,
                Clock(),
            ),
            trust=lambda error: self._trust(member, error),
            check=lambda: self._checks(member),
            history=self.records.of(member.name),
            root=state_root(),
            inventory=self.fleet.path,
        )

    def diagnose(self, one: HostRebuild) -> tuple[str, Decision]:
        """Look at a host and decide. Raises ``Locked`` for one that is kept out of use on this machine."""
        refused = setaside.refusal(state_root(), self.fleet.path, one.name, datetime.now(UTC))
        if refused:
            raise Locked(one.name, refused)
        return one.name, one.diagnose()

    def carry_out(self, one: HostRebuild, decision: Decision) -> Rebuild:
        """One host's rebuild, to its record."""
        done = one.carry_out(decision)
        try:
            self.records.add(done)
        except HostwrightError as error:  # what became of the host is true all the same
            self.emit(Note(one.name, f"its times are not kept: {error}"))
        self.emit(HostEnded(one.name, ENDED[done.outcome], done.sentence))
        return done

    def _checks(self, member: Member) -> Sequence[Check]:
        settings = self.call.options.get("var", ())
        return check_layers(member, self.fleet.path, settings, self.connections.password(member))

    def _trust(self, member: Member, error: HostKeyMismatch) -> None:
        """Take the new key over where the console says that it is right; nobody can be asked in the middle of a run."""
        if error.offered is None:
            raise error  # the key of a jump host, which is no business of this rebuild
        before = known(member.host, member.options)
        sources = Sources(console=read_means(member.host).console_command)
        confirmed = confirm(member.host, error.offered, before, sources)
        replaced = replace(member.host, member.options, confirmed.keys)
        sentence = f"its new key {error.offered} is right by {confirmed.source}, and written down"
        self.emit(Note(member.name, f"{sentence} in {', '.join(map(str, replaced.files))}"))


def _ways(member: Member) -> Ways:
    """How a host's power is switched, and how it is reinstalled, as the inventory says."""
    means = read_means(member.host)
    open_: Callable[[], Controller] | None = Opener(means.bmc) if means.bmc is not None else None
    how: Reinstall = "redfish" if means.install else "command" if means.reinstall else ""
    return Ways(open_, how)


def _start(text: str) -> Start | None:
    if text and text not in STARTS:
        raise InputError(f"found {text!r:.40}, expected one of {', '.join(STARTS)}", "--from")
    return cast(Start, text) or None


def _decisions(decisions: Mapping[str, Decision]) -> RenderableType:
    """What is going to be done, before anything is: equal decisions in one row."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("host", "way", "because", "steps", "if that fails"):
        table.add_column(column, overflow="fold")
    same: dict[Decision, list[str]] = {}
    for name, decision in decisions.items():
        same.setdefault(decision, []).append(name)
    for decision, names in same.items():
        way = "left alone" if decision.refusal and decision.way == "nothing" else decision.way
        table.add_row(
            Text(fold(names)),
            Text(way, style="red" if decision.refusal else "bold"),
            Text(console.printable("; ".join(decision.reasons))),
            " → ".join(decision.steps) or "–",
            ", then ".join(decision.escalation) or "–",
        )
    return table


def _checked(call: Call, decisions: Mapping[str, Decision], errors: tuple[HostError, ...]) -> int:
    if call["json"]:
        hosts = {name: asdict(decision) for name, decision in decisions.items()}
        print(json.dumps({"decisions": hosts, "errors": errors_json(errors)}))
    else:
        show_errors(errors)
    if errors or any(one.refusal for one in decisions.values()):
        return FAILED
    return AS_DESIRED if all(one.way == "nothing" for one in decisions.values()) else DIFFERS


def _show(  # noqa: PLR0917 - all that there is to tell
    call: Call,
    members: tuple[Member, ...],
    run: str,
    decisions: Mapping[str, Decision],
    results: Results[Rebuild],
    errors: tuple[HostError, ...],
) -> None:
    if call["json"]:
        document: dict[str, Any] = {
            "run": run,
            "decisions": {name: asdict(one) for name, one in decisions.items()},
            "rebuilds": [{**asdict(one), "at": one.at.isoformat()} for one in results.values],
            "errors": errors_json(errors),
            "untouched": list(results.untouched),
            "stopped_because": results.stopped_because,
        }
        print(json.dumps(document))
        return
    out = console.make_console()
    out.print(_summary(results.values))
    show_errors(errors)
    if results.untouched:
        out.print(Text(f"{fold(results.untouched)}: not begun, {results.stopped_because}", style="yellow"))
    show_stand_ins(members, out)
    out.print(Text(f"run {run}: `invoke runs.show --run {run}` shows every step", style="dim"))


def _summary(rebuilds: tuple[Rebuild, ...]) -> RenderableType:
    """One line a host, and the sentence of each that is not back."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("host", "outcome", "way", "time", "phases"):
        table.add_column(column, overflow="fold")
    for one in rebuilds:
        phases = "  ".join(f"{name} {took_s:.1f} s" for name, took_s in one.phases)
        outcome = Text(one.outcome, style=STYLES[one.outcome])
        table.add_row(Text(one.host), outcome, one.way, f"{one.total_s:.0f} s", phases)
    sentences = [
        Text(f"{one.host}: {console.printable(one.sentence)}", style=STYLES[one.outcome])
        for one in rebuilds
        if one.sentence
    ]
    return Group(table, *sentences)


def _report(call: Call) -> int:
    """``invoke rebuild --report``: the rebuilds that this machine remembers, by phase."""
    fleet = call.fleet()
    since = datetime.now(UTC) - read_duration(call["since"], "--since") if call["since"] else None
    found = Records(state_root(), fleet.path).all(since)
    if call["hosts"]:
        wanted = {member.name for member in call.members(fleet)}
        found = tuple(one for one in found if one.host in wanted)
    if call["json"]:
        print(json.dumps(report.document(found)))
    else:
        console.make_console().print(report.table(found))
    return AS_DESIRED
