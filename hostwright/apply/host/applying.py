"""Applies a plan to one host: probe, plan, apply, reboot if required, and repeat until nothing differs.

A round applies exactly the plan that was made from the facts before the round. Changes that depend on later facts
(``Deferred``) are planned in the next round. The host is done when new facts require no change. If a round leaves the
same differences as before, the run fails on this host and lists the differences.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from hostwright.apply import events
from hostwright.apply.delivery.delivery import Delivery, in_order
from hostwright.apply.delivery.sources.settings import read_file_settings
from hostwright.apply.disturb import draining
from hostwright.apply.disturb.draining import read_hooks
from hostwright.apply.disturb.rebooting import read_reboot_timeout, reboot
from hostwright.apply.host.alone import AloneFailures
from hostwright.apply.host.connection import HostConnection
from hostwright.apply.host.explaining import tell_cause, units_of
from hostwright.apply.host.hostrecords import HostRecords
from hostwright.apply.host.jobrunner import JobLost, JobRunner, failures
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.host.scheduling.durations import Urgency
from hostwright.apply.host.scheduling.running import run_in_order
from hostwright.apply.locking.runlock import HostLock, now_s
from hostwright.common.command import Command
from hostwright.common.errors import (
    Acceptance,
    Examination,
    HostError,
    HostwrightError,
    Locked,
    NotConverged,
    ProtocolError,
    Refused,
    ScriptFailed,
    SeveralFailed,
    StepFailed,
    Stopped,
    Unanswered,
)
from hostwright.common.untrusted import guarded
from hostwright.plan.desired import Desired
from hostwright.plan.host import drained as hostdrained
from hostwright.plan.host import jobs, locks
from hostwright.plan.model import Deferred, Facts, Plan, Planned, Refusal, RolePlan, RoleResult
from hostwright.plan.observing import ask, observe
from hostwright.plan.planning import at_work, disturbed, disturbing, losses, make_plan
from hostwright.plan.probing import ordered
from hostwright.plan.targets import TargetHost
from hostwright.transport.root.rootshell import RootShell

if TYPE_CHECKING:
    from hostwright.apply.run import Agreed, Run

#: maximum number of times that a run plans and changes one host. A GPU driver with two reboots needs four.
MAX_ROUNDS = 6
MAX_FOLLOWED = 8  #: maximum number of times that one plan waits for jobs of earlier runs (our choice)
#: tolerance in seconds between this machine's clock and a host's clock (our choice). Hosts report whole seconds.
CLOCK_S = 2.0
FRESH_S = 60.0  #: age in seconds above which a plan is made again under the host's lock (our choice)
MAX_LOST = 3  #: maximum number of host crashes during a run's jobs before the host fails (our choice)
#: error text if the machine on which Hostwright runs needs a reboot
OWN_REBOOT = (
    "this machine needs a reboot (%s), and Hostwright never reboots the machine on which it runs; reboot it, then run "
    "the same command again"
)


class Accept(Protocol):
    """Additional checks for a host that is as desired. If the checks pass, the host is undrained and done."""

    def accept(self, run: Run, target: TargetHost, *, locked: bool) -> tuple[Acceptance, ...]:
        """Check the host ``target`` under its lock. Raises ``NotAccepted`` if a check fails.

        ``locked`` means that the caller holds the lock.
        """


@dataclass(frozen=True, slots=True)
class HostJob:
    """The work of a run on one host (``target``): the desired state to reach, and the settings of the work."""

    target: TargetHost
    desired: Desired
    departs: bool = False  #: whether all roles and Hostwright's own files are removed from the host
    agreed: Agreed | None = None  #: plan that the operator approved; ``None`` if no approval was needed
    accept: Accept | None = None
    #: IDs of jobs whose end a lost worker reported; ``None`` if no worker had the host before
    ended: frozenset[str] | None = None
    rebuilds: bool = False  #: whether the run is a rebuild, which may delete data and undrains the host


class HostApply:
    """Applies the desired state to one host."""

    def __init__(self, run: Run, job: HostJob):
        self._run, self._job, self._desired, self._host = run, job, job.desired, job.target.host
        self._emit, self._holder = run.emit, run.holder(self.name)
        self._connection = HostConnection(self.name, self._connect, emit=run.emit)
        self._delivery = Delivery(self._connection, run, read_file_settings(self._host), self._desired.stack)
        self._runner = JobRunner(self._connection, run, self._delivery)
        self._records = HostRecords(self._connection, self._desired, run.stamp)
        self.rebooted_s = 0.0
        self._facts = Facts({})
        self._results: list[RoleResult] = []
        self._rebooted_for: list[str] = []
        self._lost = 0
        self._alone = AloneFailures(self.name)
        self._drained = False
        self._overruled: list[str] = []  #: messages about users of the host whose work ``--force`` disturbs
        self._attached: set[str] = set()  #: IDs of jobs of earlier runs for which this process has waited
        self._unseen_told = False
        self._lock: HostLock | None = None
        self._mutex = threading.Lock()

    @property
    def name(self) -> str:
        """The inventory name of the host."""
        return self._desired.host

    @property
    def _hooks(self) -> draining.Hooks | None:
        return read_hooks(self._host)

    @property
    def _reboots(self) -> bool:
        """Whether the run may reboot the host. Hostwright never reboots the machine on which it runs."""
        return not (self._run.request.no_reboot or self._host.local)

    def _connect(self) -> RootShell:
        return self._run.connections.connect(self._job.target)

    def close(self) -> None:
        """Release the host's lock, and close the connection unless other hosts fetch files over this connection."""
        kept = self._delivery.close()
        if self._lock is not None:
            self._lock.release()
        if not kept:
            self._connection.close()

    def probe(self) -> Facts:
        """Return the facts of the host, probed over one exec channel. Raises ``HostError`` if the probe fails."""

        def facts(shell: RootShell) -> Facts:
            self._emit(events.Waiting(self.name, "its answers"))
            return observe(shell, self._desired)

        return self._connection.use(facts)

    def plan(self) -> Plan:
        """Probe and plan the host. If jobs of earlier runs are running on the host, follow them to their end first.

        Raises ``Locked`` if the run that started these jobs is still alive.
        """
        self._facts = self.probe()
        rounds = 0
        while running := {job.id: job for job in jobs.running(self._facts)}:
            rounds += 1
            if len(running) > jobs.MOST_RUNNING or rounds > MAX_FOLLOWED:
                raise ProtocolError(self.name, "the host reports too many running jobs; check its processes")
            self._leave_to_its_run()
            for error in run_in_order(dict.fromkeys(running, ()), lambda name: self._attach(running[name])):
                raise error
            self._facts = self.probe()
        self._follow_unseen()
        plan = self._alone.note(make_plan(self._desired, self._facts))
        self._emit(events.Observed(self.name, plan, self._facts))
        return plan

    def _follow_unseen(self) -> None:
        """Report the jobs of this run that ended on the host while no worker followed them.

        Only the first call has an effect.
        """
        ended = self._job.ended
        if ended is None or self._unseen_told:
            return
        self._unseen_told = True
        probe = jobs.begun_by(self._run.id)
        begun = jobs.read_jobs(self._connection.use(lambda shell: ask(shell, (probe,)))[probe].text)
        for job in begun[: jobs.MOST_RUNNING]:
            if job.nonce and job.id not in ended | self._attached:
                self._attach(job)

    def _leave_to_its_run(self) -> None:
        held = locks.living(self._facts, self._holder)
        if held is not None:
            raise Locked(self.name, locks.held_by(held))

    def apply(self) -> Outcome:
        """Make the host match its desired state. If the host's plan differs from the approved plan, change nothing.

        Raises ``Refused`` and ``Locked`` before any change; ``StepFailed``, ``SeveralFailed``, ``NotConverged`` and
        ``Stopped`` afterwards. A refused change marked ``alone`` raises ``Refused`` after the other changes.
        """
        try:
            return self._whole()
        except HostwrightError as error:
            whole = self._alone.complete(error)
            if isinstance(whole, StepFailed | SeveralFailed | NotConverged | JobLost | ScriptFailed):
                self._examine(whole)
            if whole is error:
                raise
            raise whole from error

    def _examine(self, error: HostError) -> None:
        """Check the failed host once for known problems, and add them to ``error``. An error of this check never hides
        the failure itself.
        """
        run, again = self._run, "" if self._job.rebuilds else self._run.again
        if not run.stopping.is_set():
            error.examination = self._look(units_of(error))
        if (found := error.examination) is not None:
            self._emit(events.Explained(self.name, "after the failure", found.sentence, found.findings))
        record = str(Command("runs.show", run=run.id, hosts=self.name, steps=True)) if again else ""
        tell_cause(error, error.examination, run.explain, again=again, record=record)

    def _look(self, units: tuple[str, ...]) -> Examination | None:
        self._emit(events.Waiting(self.name, "known problems"))
        try:
            with guarded(self.name):
                knowledge, shell = self._run.roster.knowledge, self._connection.shell
                return knowledge.examine(self._job.target, shell, units, self._run.redactor.text)
        except HostwrightError as trouble:
            sentence = trouble.sentence if isinstance(trouble, HostError) else str(trouble)
            return Examination((), f"the check for known problems failed: {sentence}")

    def _whole(self) -> Outcome:
        agreed = self._job.agreed
        if agreed is not None and not agreed.plan.empty and not agreed.plan.refusals:
            self._lock_host()  # The plan is made under the lock, so that no other run can change the host.
            plan = self.plan()
            self._refuse_stale(plan)
            return self._rounds(plan)
        began_s = now_s()
        plan = self.plan()
        self._refuse_stale(plan)
        if plan.empty and not self._desired.removes:
            return self._done(plan, plan)
        self._check(plan)
        free_s = self._lock_host()
        # Another run may have changed the host since the first plan.
        if now_s() - began_s >= min(free_s - CLOCK_S, FRESH_S):
            plan = self.plan()
            self._refuse_stale(plan)
        return self._rounds(plan)

    def _rounds(self, first: Plan) -> Outcome:
        plan = first
        self._records.note_origin(self._facts)
        for _ in range(MAX_ROUNDS + MAX_LOST):
            if plan.empty:
                return self._done(first, plan)
            self._check(plan)
            urgency = Urgency.of(plan, lambda: self._run.durations(self._job.target.stack))
            self._delivery.start(in_order(plan, self._desired.stack, urgency.roles))
            self._drain(plan)
            lost_before = self._lost
            self._apply(plan, urgency)
            after = self._alone.beside(self.plan())
            self._alone.check(plan, after)
            if after.reboot and not self._reboots:
                return self._reboot_pending(first, after)
            if after.reboot:
                after = self._reboot(after)
            if after == plan and self._lost == lost_before:
                raise NotConverged(self.name, f"every step succeeded, but some states still differ: {_names(after)}")
            plan = after
        raise NotConverged(self.name, f"after {MAX_ROUNDS} rounds of steps, some states still differ: {_names(plan)}")

    def _done(self, first: Plan, left: Plan) -> Outcome:
        if self._desired.apart:
            return self._outcome(first, left)
        drained = self._drained or hostdrained.drained(self._facts) is not None
        if self._desired.removes:
            self._lock_host()  # While the records are removed, no other run may provision the host.
            self._records.note_removal(self._facts, depart=self._job.departs)
            if drained:
                self._emit(events.Note(self.name, "the host stays drained, because its software for jobs was removed"))
            return self._outcome(first, left)
        if trouble := self._records.note_release(self._facts, lambda: self._run.keep(self._desired.stack)):
            self._emit(events.Note(self.name, trouble))
        acceptance = self._accept()
        if drained and not (self._run.request.keep_drained or self._job.rebuilds):
            self._undrain()
        return replace(self._outcome(first, left), acceptance=acceptance)

    def _accept(self) -> tuple[Acceptance, ...]:
        """Run the additional checks under this run's lock on the host. Raises ``NotAccepted`` if a check fails, and
        ``Stopped`` if the operator has stopped the run.
        """
        accept = self._job.accept
        if accept is None:
            return ()
        if self._run.stopping.is_set():
            raise Stopped(
                self.name, "stopped by the operator; the host is as desired, but the additional checks did not run"
            )
        self._lock_host()
        return accept.accept(self._run, self._job.target, locked=True)

    def _reboot_pending(self, first: Plan, left: Plan) -> Outcome:
        if self._host.local:
            self._emit(events.Note(self.name, OWN_REBOOT % left.reboot))
        return self._outcome(first, left)

    def _outcome(self, first: Plan, left: Plan) -> Outcome:
        return Outcome(self.name, first, tuple(self._results), left, len(self._rebooted_for))

    def _check(self, plan: Plan) -> None:
        """Raise an error if a lock, a rule, running work or a missing file forbids ``plan``."""
        self._go_on(plan)
        locked = locks.refusal(self._facts, datetime.now(UTC))
        if locked:
            raise Locked(self.name, locked)
        if plan.refusals:
            raise Refused(self.name, "; ".join(plan.refusals))
        if (lost := self._unagreed(plan)) and not self._run.request.yes:
            raise Unanswered(self.name, f"{lost} would be deleted permanently; pass --yes to confirm")
        decision = self._decide(plan)
        if decision.refusal:
            raise Refused(self.name, decision.refusal)
        self._delivery.check([self._desired.stack.artifacts[name] for name in plan.artifacts])

    def _unagreed(self, plan: Plan) -> str:
        seen = (self._job.agreed.losses if self._job.agreed else None) or ()
        lost = () if self._job.rebuilds else losses(self._desired, plan, self._facts)
        return " and ".join(loss for loss in lost if loss not in seen)

    def _go_on(self, plan: Plan) -> None:
        """Raise ``Stopped`` if the operator has stopped the run."""
        if self._run.stopping.is_set():
            left = ", ".join(role.role for role in plan.roles)
            raise Stopped(self.name, f"stopped by the operator; remaining changes: {left}")

    def _due(self, plan: Plan) -> Plan:
        return plan if self._reboots else plan.without_reboots()

    def _decide(self, plan: Plan) -> draining.DrainDecision:
        request, due = self._run.request, self._due(plan)
        hit = disturbed(self._desired, due, self._facts)
        if request.force and (told := draining.overruled(due.disturbs, hit)) and told not in self._overruled:
            self._overruled.append(told)
            self._emit(events.Note(self.name, told))
        return draining.decide(due.disturbs, hit, hooks=self._hooks, drain=request.drain, force=request.force)

    def _drain(self, plan: Plan) -> None:
        decision = self._decide(plan)
        hooks = self._hooks
        if not decision.drain or hooks is None:
            return
        # Only a drain by this run counts, because an earlier run may have recorded a drain without completing it.
        if not self._drained:
            self._connection.use(
                lambda shell: draining.drain(shell, hooks, self._context(plan.disturbs), self._emit), steady=True
            )
            self._drained = True
        draining.wait_until_idle(self.name, lambda: self._users(plan), hooks.timeout_s, self._emit)

    def _users(self, plan: Plan) -> tuple[str, ...]:
        self._go_on(plan)
        states = disturbing(self._desired, self._facts)
        probes = ordered([*self._desired.occupancy.probes, *(probe for state in states for probe in state.probes())])
        facts = self._connection.use(lambda shell: ask(shell, probes))
        return at_work(self._desired, states, facts, reboots=bool(self._due(plan).reboot)).everyone

    def _undrain(self) -> None:
        hooks = self._hooks
        if hooks is None:
            self._emit(
                events.Note(
                    self.name, "the host stays drained by an earlier run, because no undrain command is configured"
                )
            )
            return
        self._connection.use(
            lambda shell: draining.undrain(shell, hooks, self._context("as desired"), self._emit), steady=True
        )

    def _context(self, reason: str) -> draining.Context:
        return draining.Context(self.name, reason, self._run.id, self._run.stamp.operator)

    def _lock_host(self) -> float:
        """Acquire the host's lock, unless this run already holds the lock. Return the seconds for which no run had held
        the lock before. Raises ``Locked`` if another run holds the lock.
        """
        with self._mutex:
            before = self._lock
            if before is not None and not before.lost:
                return before.free_s
            if before is not None:
                before.release()
            self._lock = self._connection.use(
                lambda shell: HostLock.acquire(
                    shell, self._holder, notify=lambda text: self._emit(events.Note(self.name, text))
                )
            )
            return self._lock.free_s

    def _apply(self, plan: Plan, urgency: Urgency) -> None:
        busy = {role.role: role for role in plan.roles if role.steps}
        ended = run_in_order(
            {name: busy[name].needs for name in urgency.roles},
            lambda name: self._run_role(plan, busy[name], urgency.left_s[name]),
            skipped=lambda name, after: self._emit(
                events.Note(self.name, f"the role {name} was skipped, because {after} failed")
            ),
        )
        # Several roles that waited for the same file end with the same error.
        ended = list(dict.fromkeys(ended))
        lost = [error for error in ended if isinstance(error, JobLost)]
        stopped = [error for error in ended if isinstance(error, Stopped)]
        bad = [error for error in ended if error not in lost and error not in stopped]
        if len(bad) > 1:
            raise SeveralFailed(self.name, bad)
        for error in bad or stopped:
            raise error
        self._survive(lost)

    def _survive(self, lost: Sequence[JobLost]) -> None:
        if not lost:
            return
        self._lost += 1
        if self._lost > MAX_LOST:
            raise lost[0]
        self._emit(events.Note(self.name, f"{lost[0].sentence}; determining the remaining steps"))

    def _run_role(self, whole: Plan, plan: RolePlan, left_s: tuple[float, ...]) -> None:
        self._go_on(whole)
        self._lock_host()
        result = self._runner.execute(plan, [self._desired.stack.artifacts[name] for name in plan.artifacts], left_s)
        self._results.append(result)
        if result.status != 0:
            alone, error = failures(self.name, plan, result, self._run.explain, self._run.redactor.text)
            self._alone.errors += alone
            if error is not None:
                raise error

    def _attach(self, job: jobs.RunningJob) -> None:
        self._attached.add(job.id)
        try:
            self._results.append(self._runner.attach(job))
        except JobLost as lost:
            self._emit(events.Note(self.name, lost.sentence))

    def _refuse_stale(self, plan: Plan) -> None:
        """Raise ``Refused`` if ``plan`` contains other work than the approved plan, or would permanently delete other
        data.
        """
        agreed = self._job.agreed
        if agreed is None:
            return
        # Saved plans contain masked secrets, so both plans are masked before the comparison.
        now, then = map(self._run.redactor.plan, (plan, agreed.plan))
        if now != then and not (self._attached and _is_part(now, then)):
            raise Refused(plan.host, "the host changed since this plan was made; nothing was done; plan again")
        if agreed.losses is not None and (lost := self._unagreed(plan)):
            raise Refused(
                plan.host,
                f"{lost} would now be deleted permanently, which the plan did not show; nothing was done; plan again",
            )

    def _reboot(self, plan: Plan) -> Plan:
        """Reboot the host once for all states in ``plan`` that need a reboot, and return the plan made afterwards.
        Raises ``NotConverged`` if the reason for the reboot remains.
        """
        self._check(plan)
        self._drain(plan)
        self._lock_host()
        self._delivery.pause()
        reason = plan.reboot
        shell, seconds = reboot(
            self._connection.shell,
            self._connect,
            timeout_s=read_reboot_timeout(self._host),
            reason=reason,
            emit=self._emit,
        )
        self._connection.replace(shell)
        self._rebooted_for.append(reason)
        self.rebooted_s += seconds
        self._emit(events.Rebooted(self.name, reason, seconds))
        after = self.plan()
        if after.reboot == reason:
            raise NotConverged(self.name, f"the host was rebooted, but the reason for the reboot remains: {reason}")
        return after


def _is_part(plan: Plan, whole: Plan) -> bool:
    changes = {role.role: role.changes for role in whole.roles}
    left = all(change in changes.get(role.role, ()) for role in plan.roles for change in role.changes)
    return left and not plan.refusals and plan.reboot in ("", whole.reboot)


def _names(plan: Plan) -> str:
    return ", ".join(f"{role.role}: {change.what}{_why(change)}" for role in plan.roles for change in role.changes)


def _why(planned: Planned) -> str:
    if isinstance(planned, Deferred):
        return f" ({planned.have}; known after {planned.until})"
    return f" ({planned.sentence if isinstance(planned, Refusal) else f'{planned.have} → {planned.want}'})"
