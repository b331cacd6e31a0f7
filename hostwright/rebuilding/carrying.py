"""One host through its rebuild: the way that was decided, what comes after it, and the end, each phase timed.

A way that fails is followed by the next one that the decision named before, and only by such a one. After the power
came back, the host is looked at again and decided about afresh. What ends in vain with a host that may be half
installed, or that nobody can see, leaves it locked, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hostwright import applying, departure, draining, events, locks
from hostwright.errors import HostError, HostKeyMismatch, HostwrightError, Locked, Refused, Stopped
from hostwright.fleet import Member
from hostwright.model import Change, Plan, RolePlan
from hostwright.outcome import Settings
from hostwright.planning import Desired, removal_of
from hostwright.rebuilding import powering
from hostwright.rebuilding.clock import Phases
from hostwright.rebuilding.diagnosis import Diagnosis
from hostwright.rebuilding.keeping import keep_locked
from hostwright.rebuilding.looking import Looked, Ways, look
from hostwright.rebuilding.values import Outcome, Phase, Rebuild, Start, Way
from hostwright.rebuilding.ways import Decision, decide, decide_again
from hostwright.resources.gpu_use import users
from hostwright.transport import Session
from hostwright.verifying import Check

MAX_WAYS = 8  #: power on, cycle twice, trust, repair, relayer, reinstall and what follows; more goes in a circle
#: ways in which a host may be left half done, or unseen: nobody else shall work on it then
LEAVES_LOCKED: tuple[Way, ...] = ("power on", "power cycle", "reinstall")


@dataclass(frozen=True)
class Tools:
    """What the rebuild of one host needs from the run around it."""

    member: Member
    connect: Callable[[], Session]
    settings: Settings
    ways: Ways
    install: Callable[[str, Phases], None]  #: a new operating system, for this reason; returns when SSH answers
    trust: Callable[[HostKeyMismatch], None]  #: take the new host key over by intent, or raise
    check: Callable[[], Sequence[Check]]  #: the layers' checks
    history: tuple[Rebuild, ...]
    root: Path  #: of this machine's state (``journal.state_root``)
    inventory: Path


class HostRebuild:
    """The rebuild of one host, from the first look to its record."""

    def __init__(self, tools: Tools, start: Start | None = None):
        self._tools = tools
        self._start = start
        self._emit = tools.settings.emit
        self._taken: list[Way] = []
        self._reasons: list[str] = []
        self._rules: list[str] = []
        self._failures: list[str] = []
        self._began = datetime.now(UTC)
        self._phases = Phases(on_end=lambda name, took_s: self._emit(events.Phase(self.name, name, took_s)))
        self._looked: Looked | None = None

    @property
    def name(self) -> str:
        """The host's inventory name."""
        return self._tools.member.name

    def diagnose(self) -> Decision:
        """Look at the host and decide; nothing is changed."""
        return decide(self._look(), self._start)

    def _look(self) -> Diagnosis:
        tools = self._tools
        with self._phases.phase("diagnose"):
            self._looked = look(
                tools.member, tools.connect, tools.settings.password, tools.ways,
                history=tools.history, tried=tuple(self._taken),
            )  # fmt: skip
        return self._looked.diagnosis

    def carry_out(self, decision: Decision) -> Rebuild:
        """Take the way that was decided, and those after it, to the end; the record of it.

        A rebuild that fails raises nothing but ``Stopped``: its record says why.
        """
        try:
            outcome, sentence = self._carry_out(decision)
        except Stopped:
            raise
        except HostwrightError as error:
            outcome, sentence = "failed", error.sentence if isinstance(error, HostError) else str(error)
            if self._taken and self._taken[-1] in LEAVES_LOCKED:
                sentence = self._lock(sentence)
        return self._record(outcome, sentence)

    def _carry_out(self, first: Decision) -> tuple[Outcome, str]:
        """The outcome and its sentence. Raises where nothing more is to be tried."""
        decision = first
        for _ in range(MAX_WAYS):
            self._note(decision, shown=decision is not first)
            if decision.way == "hand over":
                return "handed over", self._hand_over(decision)
            if decision.refusal:
                raise Refused(self.name, decision.refusal)
            self._refuse_locked()
            self._go_on()
            self._taken.append(decision.way)
            if self._took(decision):
                return ("as desired" if self._taken == ["nothing"] else "rebuilt"), ""
            decision = decide_again(first, self._look(), self._start)
        raise HostError(self.name, f"after {', '.join(self._taken)} it is still not as desired; look at its console")

    def _took(self, decision: Decision) -> bool:
        """Take one way; whether the host is in service now. Where it is not, it is to be looked at again."""
        try:
            return self._take(decision.way, decision)
        except (Refused, Stopped):
            raise  # what was refused now would be refused on any other way
        except HostError as error:
            if decision.way == "reinstall":
                raise  # what answers now may be the installer: only people can tell
            self._failures.append(f"{decision.way}: {error.sentence}")
            self._emit(events.Note(self.name, f"{decision.way} failed: {error.sentence}"))
            return False

    def _take(self, way: Way, decision: Decision) -> bool:
        match way:
            case "nothing":
                self._verify()
            case "repair":
                if decision.clean:
                    self._clean()
                self._provision()
            case "relayer":
                self._require_files()
                self._converge(removal_of(self._tools.member.desired), "remove")
                self._provision()
            case "reinstall":
                self._require_files()
                self._tools.install("; ".join(decision.reasons), self._phases)
                self._provision()
            case "trust":
                self._trust()
                return False
            case _:
                self._power(way, decision)
                return False
        self._back_to_work(changed=way != "nothing")
        return True

    def _require_files(self) -> None:
        """Before anything is taken away: all files with which it is laid again are here. Raises ``ArtifactError``."""
        for artifact in self._tools.member.stack.used_artifacts:
            if not self._tools.settings.direct:
                self._tools.settings.locate(artifact)

    def _clean(self) -> None:
        """Make room: what we delivered and no longer need, and what apt can fetch again."""
        with self._phases.phase("remove"), self._tools.connect() as session:
            departure.clean(session, self._tools.member.stack, self._tools.settings.password)

    def _provision(self) -> None:
        """Bring the host to its stack, and check every layer by what it does."""
        self._converge(self._tools.member.desired, "provision")
        self._verify()

    def _converge(self, desired: Desired, phase: Phase) -> None:
        """Bring the host to these states; reboots on the way are a phase of their own."""

        rebooted_s = 0.0

        def emit(event: events.Event) -> None:
            nonlocal rebooted_s
            if isinstance(event, events.Rebooted):
                rebooted_s += event.seconds
            self._emit(event)

        settings = replace(self._tools.settings, emit=emit, undrain=False, depart=False)
        host = applying.Host(self._tools.connect, desired, settings)
        try:
            with self._phases.phase(phase):
                try:
                    host.converge()
                finally:
                    host.close()
        finally:
            self._phases.move(phase, "reboot", rebooted_s)

    def _verify(self) -> None:
        """Every layer's checks; one that does not hold is the way's failure."""
        with self._phases.phase("verify"):
            bad = [check for check in self._tools.check() if not check.passed]
        if bad:
            first = bad[0]
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            raise HostError(self.name, f"it is as planned, and a check of {first.role} fails: {first.sentence}{more}")

    def _power(self, way: Way, decision: Decision) -> None:
        """Give or cut the power, or reboot where that does, and wait until the host answers in another boot."""
        found = self._looked.diagnosis if self._looked else None
        if found and found.reach == "answers":
            self._make_room(found)
        before = found.boot_id if found else ""
        powering.switch(self._tools, self._phases, way, by_bmc=decision.by != "ssh", boot_id=before)

    def _trust(self) -> None:
        error = self._looked.error if self._looked else None
        if not isinstance(error, HostKeyMismatch):
            raise HostError(self.name, "its host key is the one that is known")
        self._tools.trust(error)

    def _make_room(self, found: Diagnosis) -> None:
        """Take work off a host before its power is cut, where the inventory says how; else nobody's work is ended."""
        settings, facts = self._tools.settings, self._looked.facts if self._looked else None
        cut = RolePlan("power", (), (Change("power", "on", "off and on", disturbs="cuts its power"),))
        plan = Plan(found.host, self._tools.member.stack.name, (cut,), busy=users(facts) if facts is not None else ())
        decision = draining.decide(plan, hooks=settings.hooks, drain=settings.drain, force=settings.force)
        if decision.refusal:
            raise Refused(self.name, decision.refusal)
        if decision.drain:
            self._drain("power cycle")

    def _drain(self, reason: str) -> None:
        hooks = self._tools.settings.hooks
        if hooks is None:
            return
        with self._phases.phase("drain"), self._tools.connect() as session:
            draining.drain(session, hooks, self._context(reason), self._emit)

    def _back_to_work(self, *, changed: bool) -> None:
        """Let work back to the host: always after a change, since whoever gives work may have noticed its absence."""
        hooks = self._tools.settings.hooks
        facts = self._looked.facts if self._looked else None
        drained = facts is not None and draining.drained(facts) is not None
        if hooks is None or not (changed or drained):
            return
        with self._phases.phase("undrain"), self._tools.connect() as session:
            draining.undrain(session, hooks, self._context("rebuilt"), self._emit)

    def _context(self, reason: str) -> draining.Context:
        run = self._tools.settings.run
        return draining.Context(self.name, reason, run.id, run.operator, self._tools.settings.password)

    def _hand_over(self, decision: Decision) -> str:
        """Nothing more can be done from here: no work, a lock, and the reason for whoever comes."""
        self._taken.append("hand over")
        reason = "; ".join([*decision.reasons, *self._failures])
        if self._looked and self._looked.diagnosis.reach == "answers":
            self._refuse_locked()
            try:
                self._drain(reason)
            except HostError as error:
                self._emit(events.Note(self.name, error.sentence))
        return self._lock(reason)

    def _lock(self, reason: str) -> str:
        """Keep everybody off the host; the sentence with where the lock is."""
        tools = self._tools
        answers = self._looked is not None and self._looked.diagnosis.reach == "answers"
        return keep_locked(tools, reason, answers=answers)

    def _refuse_locked(self) -> None:
        """A host that an operator locked, or that another run works on, is left alone."""
        facts = self._looked.facts if self._looked else None
        if facts is None:
            return
        sentence = locks.refusal(facts, datetime.now(UTC))
        holder = self._tools.settings.holder
        held = locks.living(facts, holder) if holder is not None else None
        if sentence or held is not None:
            raise Locked(self.name, sentence or locks.held_by(held))

    def _go_on(self) -> None:
        if self._tools.settings.stopping():
            raise Stopped(self.name, f"stopped by the operator after {', '.join(self._taken) or 'the first look'}")

    def _note(self, decision: Decision, *, shown: bool) -> None:
        """Keep what was decided; the first decision has been seen by the operator."""
        self._reasons += [one for one in decision.reasons if one not in self._reasons]
        self._rules += [one for one in decision.rules if one not in self._rules]
        if shown:
            self._emit(events.Note(self.name, f"{decision.way}: {'; '.join(decision.reasons)}"))

    def _record(self, outcome: Outcome, sentence: str) -> Rebuild:
        run = self._tools.settings.run
        return Rebuild(
            host=self.name, run=run.id, at=self._began, operator=run.operator, ways=tuple(self._taken),
            outcome=outcome, sentence=sentence, reasons=tuple(self._reasons), rules=tuple(self._rules),
            phases=self._phases.taken, total_s=self._phases.total_s,
        )  # fmt: skip
