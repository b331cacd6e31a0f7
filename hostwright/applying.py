"""One host through its plan: observe, apply, reboot where a state asks for it, and look again until nothing differs.

A round applies exactly the plan that the look before it made. What could not be known then (``known_after``) is known
in the next round. The host is done when a fresh look finds nothing to change; a round that leaves the same differences
is the end, with an error that names them. A job that a crash of the host cut off is no end: the next look finds what
it left undone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from hostwright import departure, draining, events, jobs, locks, release
from hostwright.draining import Hooks
from hostwright.errors import HostError, Locked, NotConverged, Refused, SeveralFailed, Stopped
from hostwright.events import Emit
from hostwright.holding import HostLock
from hostwright.line import Line, Patience
from hostwright.model import Facts, Plan, RolePlan, RoleResult
from hostwright.observing import ask, observe
from hostwright.planning import Desired, make_plan
from hostwright.rebooting import reboot
from hostwright.release import Run
from hostwright.resources import originals
from hostwright.resources.gpu_use import BUSY_PROBES, users
from hostwright.running import JobLost, Runner, failure
from hostwright.scheduling import run_in_order
from hostwright.secret import Secret
from hostwright.stack import Artifact, Stack
from hostwright.transport import Session

MAX_ROUNDS = 6  #: blacklist → reboot → driver → reboot → what was known after: four; more means it does not converge
MAX_LOST = 3  #: how often a host may go down in the middle of a job before that is taken for what the job does to it
RECORD_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What applying needs to know beside the plan."""

    run: Run
    emit: Emit
    locate: Callable[[Artifact], Path]  #: the file of an artifact on this machine; raises ``ArtifactError``
    password: Secret | None = None  #: for sudo
    holder: locks.Holder | None = None  #: in whose name the host is locked; ``None``: it is not
    reboot_timeout_s: float = 1800.0  #: bare metal comes back slowly (PEERS A1 row 11: 20–30 min)
    allow_reboot: bool = True
    direct: bool = False  #: hosts fetch from the vendor what has an http(s) URL, instead of getting it over SSH
    hooks: Hooks | None = None  #: what takes work off the host and lets it back
    drain: bool = False  #: drain a host that is in use, and wait for it
    force: bool = False  #: disturb running work
    depart: bool = True  #: with the last role that is taken away, all that Hostwright kept there goes too
    undrain: bool = True  #: let work back to a host that is as desired; false: whoever asks does it later
    #: keeps the stack of a verified host on this machine, for the way back; a sentence where it cannot
    keep: Callable[[Stack], str] = lambda _: ""
    stopping: Callable[[], bool] = lambda: False  #: whether nothing new shall be begun
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one host: the first plan, every role's results, and what is left to do."""

    host: str
    plan: Plan
    results: tuple[RoleResult, ...] = ()
    left: Plan | None = None  #: the differences after the last round; ``None`` before anything was applied
    reboots: int = 0

    @property
    def changed(self) -> bool:
        """Whether anything was done on the host."""
        return bool(self.results or self.reboots)

    @property
    def word(self) -> str:
        """The outcome as one of ``events.RESULTS``."""
        if self.left is not None and not self.left.empty:
            return "pending"
        return "changed" if self.changed else "as desired"


class Host:
    """One host under work: the line to it, its lock, and what was done so far."""

    def __init__(self, connect: Callable[[], Session], desired: Desired, settings: Settings):
        self._connect = connect
        self._desired = desired
        self._settings = settings
        self._emit = settings.emit
        self._line = Line(
            desired.host, connect, password=settings.password, emit=settings.emit, patience=settings.patience
        )
        run = settings.run
        self._runner = Runner(self._line, self._emit, settings.locate, run.id, run.operator, settings.direct)
        self._facts = Facts({})
        self._results: list[RoleResult] = []
        self._rebooted_for: list[str] = []
        self._lost = 0
        self._drained = False
        self._lock: HostLock | None = None
        self._mutex = threading.Lock()

    @property
    def name(self) -> str:
        """The host's inventory name."""
        return self._desired.host

    def close(self) -> None:
        """Give the lock back and close the connection."""
        if self._lock is not None:
            self._lock.release()
        self._line.close()

    def observe(self) -> Facts:
        """Ask every question, over one exec channel."""

        def look(session: Session) -> Facts:
            self._emit(events.Waiting(self.name, "its answers"))
            return observe(session, self._desired, self._settings.password)

        return self._line.use(look)

    def look(self) -> Plan:
        """Observe and plan; jobs that a run which is gone left running are followed to their end first.

        That needs no lock. Those of a run that lives are its own: it is named, in ``Locked``.
        """
        self._facts = self.observe()
        while running := {job.id: job for job in jobs.running(self._facts)}:
            self._leave_to_its_run()
            for error in run_in_order(dict.fromkeys(running, ()), lambda name: self._attach(running[name])):
                raise error
            self._facts = self.observe()
        plan = make_plan(self._desired, self._facts, datetime.now(UTC))
        self._emit(events.Observed(self.name, plan, self._facts))
        return plan

    def _leave_to_its_run(self) -> None:
        holder = self._settings.holder
        held = locks.living(self._facts, holder) if holder is not None else None
        if held is not None:
            raise Locked(self.name, locks.held_by(held))

    def converge(self, expected: Plan | None = None) -> Outcome:
        """Bring the host to its stack. ``expected`` is a plan shown before: when it is stale, nothing is touched."""
        plan = self.look()
        _refuse_stale(plan, expected)
        if plan.empty:
            return self._done(plan, plan)
        self._check(plan)
        self._hold()
        plan = self.look()  # whoever had the lock before may have done what we saw
        _refuse_stale(plan, expected)
        return self._rounds(plan)

    def _rounds(self, first: Plan) -> Outcome:
        plan = first
        self._note_origin()
        for _ in range(MAX_ROUNDS + MAX_LOST):
            if plan.empty:
                return self._done(first, plan)
            self._check(plan)
            self._make_room(plan)
            lost_before = self._lost
            self._apply(plan)
            after = self.look()
            if after.reboot and not self._settings.allow_reboot:
                return self._outcome(first, after)
            if after.reboot:
                after = self._reboot(after)
            if after == plan and self._lost == lost_before:
                raise NotConverged(self.name, f"everything ran, and these still differ: {_names(after)}")
            plan = after
        raise NotConverged(self.name, f"after {MAX_ROUNDS} rounds these still differ: {_names(plan)}")

    def _note_origin(self) -> None:
        """Before the first change ever: write down on the host what is there, so that it can be had again."""
        if not self._desired.removes and not release.read(self._facts):
            self._write("what was there before the first change", originals.RECORD)

    def _done(self, first: Plan, left: Plan) -> Outcome:
        """The host is as desired: work comes back to it, and its record says what it is."""
        if self._desired.removes:
            return self._gone(first, left)
        if self._settings.undrain and (self._drained or draining.drained(self._facts) is not None):
            self._undrain()
        before, stack = release.read(self._facts), self._desired.stack
        record = release.renewed(self._desired, before, self._settings.run)
        if record is not None:
            script = release.write_script(record, former=release.former_name(before, stack))
            self._write(f"its release record {release.PATH}", script)
        if trouble := self._settings.keep(stack):
            self._emit(events.Note(self.name, trouble))
        return self._outcome(first, left)

    def _gone(self, first: Plan, left: Plan) -> Outcome:
        """The roles are gone: the record says so, and with the last of them all that Hostwright itself kept goes.

        A host whose layers are laid again at once keeps it: what was there before the first change is still that.
        """
        record = release.reduced(release.read(self._facts), [role.name for role in self._desired.roles])
        if record:
            self._write(f"its release record {release.PATH}", release.write_script(record))
        elif record is not None and self._settings.depart:
            self._write("what Hostwright kept there", departure.SCRIPT)
        if draining.drained(self._facts) is not None or self._drained:
            self._emit(events.Note(self.name, "it stays drained: nothing is there that work could use"))
        return self._outcome(first, left)

    def _write(self, what: str, script: str) -> None:
        """Write something of our own on the host. Raises ``HostError``."""
        written = self._line.root(script, RECORD_TIMEOUT_S)
        if written.status != 0:
            said = written.stderr.decode("utf-8", errors="replace").strip()
            raise HostError(self.name, f"{what} cannot be written: {said}")

    def _outcome(self, first: Plan, left: Plan) -> Outcome:
        return Outcome(self.name, first, tuple(self._results), left, len(self._rebooted_for))

    def _check(self, plan: Plan) -> None:
        """Everything that must be so before the host is touched at all."""
        self._go_on(plan)
        locked = locks.refusal(self._facts, datetime.now(UTC))
        if locked:
            raise Locked(self.name, locked)
        if plan.refusals:
            raise Refused(self.name, "; ".join(plan.refusals))
        decision = self._decide(plan)
        if decision.refusal:
            raise Refused(self.name, decision.refusal)
        names = dict.fromkeys(name for change in plan.changes for name in change.artifacts)
        self._runner.check_files([self._desired.stack.artifacts[name] for name in names])

    def _go_on(self, plan: Plan) -> None:
        """Raise ``Stopped`` where nothing new shall be begun."""
        if self._settings.stopping():
            left = ", ".join(one.role for one in plan.roles)
            raise Stopped(self.name, f"stopped by the operator; left to do: {left}")

    def _decide(self, plan: Plan) -> draining.Decision:
        settings = self._settings
        if not settings.allow_reboot:
            plan = replace(plan, roles=tuple(_without_reboot(role) for role in plan.roles))
        return draining.decide(plan, hooks=settings.hooks, drain=settings.drain, force=settings.force)

    def _make_room(self, plan: Plan) -> None:
        """Take running work off a host that is about to be disturbed, and wait until it has ended."""
        decision = self._decide(plan)
        hooks = self._settings.hooks
        if not decision.drain or hooks is None:
            return
        if not self._drained:  # by this run; an earlier one may have died between its mark and its command
            self._line.use(lambda session: draining.drain(session, hooks, self._context(plan.disturbs), self._emit))
            self._drained = True
        draining.wait_until_idle(self.name, lambda: self._users(plan), hooks.timeout_s, self._emit)

    def _users(self, plan: Plan) -> tuple[str, ...]:
        """Who uses the GPU now; no other question is asked again."""
        self._go_on(plan)
        password = self._settings.password
        return users(self._line.use(lambda session: ask(session, self.name, BUSY_PROBES, password)))

    def _undrain(self) -> None:
        hooks = self._settings.hooks
        if hooks is None:
            self._emit(events.Note(self.name, "it was drained by an earlier run, and no undrain command is configured"))
            return
        self._line.use(lambda session: draining.undrain(session, hooks, self._context("as desired"), self._emit))

    def _context(self, reason: str) -> draining.Context:
        run = self._settings.run
        return draining.Context(self.name, reason, run.id, run.operator, self._settings.password)

    def _hold(self) -> None:
        """Have the host's lock, or raise ``Locked``. One that a lost connection took along is taken again."""
        holder = self._settings.holder
        if holder is None:
            return
        with self._mutex:
            before = self._lock
            if before is not None and not before.lost:
                return
            if before is not None:
                before.release()
            self._lock = self._line.use(
                lambda session: HostLock.acquire(
                    session,
                    holder,
                    password=self._settings.password,
                    notify=lambda text: self._emit(events.Note(self.name, text)),
                )
            )

    def _apply(self, plan: Plan) -> None:
        """Run the roles of a plan, each after those it needs; what failed is raised when all have ended."""
        busy = {role.role: role for role in plan.roles if role.steps}
        failures = run_in_order(
            {role.role: role.needs for role in busy.values()},
            lambda name: self._run_role(plan, busy[name]),
            skipped=lambda name, after: self._emit(events.Note(self.name, f"{name} not tried: {after} failed")),
        )
        lost = [one for one in failures if isinstance(one, JobLost)]
        stopped = [one for one in failures if isinstance(one, Stopped)]
        bad = [one for one in failures if one not in lost and one not in stopped]
        if len(bad) > 1:
            raise SeveralFailed(self.name, bad)
        for error in (*bad, *stopped[:1]):
            raise error
        self._survive(lost)

    def _survive(self, lost: Sequence[JobLost]) -> None:
        if not lost:
            return
        self._lost += 1
        if self._lost > MAX_LOST:
            raise lost[0]
        self._emit(events.Note(self.name, f"{lost[0].sentence}; looking at what is left to do"))

    def _run_role(self, whole: Plan, plan: RolePlan) -> None:
        self._go_on(whole)
        self._hold()
        names = dict.fromkeys(name for change in plan.changes for name in change.artifacts)
        result = self._runner.run(plan, [self._desired.stack.artifacts[name] for name in names])
        self._results.append(result)
        if result.status != 0:
            raise failure(self.name, plan, result)

    def _attach(self, job: jobs.RunningJob) -> None:
        try:
            self._results.append(self._runner.attach(job))
        except JobLost as lost:
            self._emit(events.Note(self.name, lost.sentence))

    def _reboot(self, plan: Plan) -> Plan:
        """Reboot once for all that want it; the plan after it, in which the reason must be gone."""
        self._check(plan)
        self._make_room(plan)
        self._hold()
        reason = plan.reboot
        session, seconds = reboot(
            self._line.session,
            self._connect,
            password=self._settings.password,
            timeout_s=self._settings.reboot_timeout_s,
            reason=reason,
            emit=self._emit,
        )
        self._line.replace(session)
        self._rebooted_for.append(reason)
        self._emit(events.Rebooted(self.name, reason, seconds))
        after = self.look()
        if after.reboot == reason:
            raise NotConverged(self.name, f"it was rebooted, and the reason is still there: {reason}")
        return after


def _refuse_stale(plan: Plan, expected: Plan | None) -> None:
    if expected is not None and plan != expected:
        raise Refused(plan.host, "its facts moved since the plan was saved; make a new plan and look at it")


def _without_reboot(role: RolePlan) -> RolePlan:
    return replace(role, changes=tuple(replace(change, reboot="") for change in role.changes))


def _names(plan: Plan) -> str:
    return ", ".join(f"{role.role}: {change.what}" for role in plan.roles for change in role.changes)
