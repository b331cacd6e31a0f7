"""One host through its plan: observe, apply, reboot where a state asks for it, and look again until nothing differs.

A round applies exactly the plan that the look before it made. What could not be known then (``known_after``) is known
in the next round. The host is done when a fresh look finds nothing to change; a round that leaves the same differences
is the end, with an error that names them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hostwright import events, jobs, probing
from hostwright.become import check_become, wrap
from hostwright.delivery import deliver, fetch_script
from hostwright.errors import FailedStep, HostError, NotConverged, ProtocolError, Refused, SeveralFailed, StepFailed
from hostwright.events import Emit
from hostwright.failures import classify
from hostwright.model import Facts, Plan, RolePlan, RoleResult
from hostwright.planning import Desired, make_plan
from hostwright.rebooting import reboot
from hostwright.scheduling import run_in_order
from hostwright.scripting import LogReader
from hostwright.secret import Secret
from hostwright.stack import Artifact
from hostwright.transport import Output, Session

MAX_ROUNDS = 6  #: blacklist → reboot → driver → reboot → what was known after: four; more means it does not converge
TAIL_LINES = 15  #: of a failed step's output, shown to the operator
JOB_TIMEOUT_S = 6 * 3600.0  #: a watch ends then; the steps have their own, shorter limits on the host
START_TIMEOUT_S = 120.0
FETCH_TIMEOUT_S = 2 * 3600.0  #: a 2.5 GB file at 3 Mbit/s
WATCH_CAP_BYTES = 1 << 30  #: the log is read as a stream and not kept; this only bounds a host gone mad


@dataclass(frozen=True, slots=True)
class Settings:
    """What applying needs to know beside the plan."""

    run_id: str
    emit: Emit
    locate: Callable[[Artifact], Path]  #: the file of an artifact on this machine; raises ``ArtifactError``
    password: Secret | None = None  #: for sudo
    reboot_timeout_s: float = 1800.0  #: bare metal comes back slowly (PEERS A1 row 11: 20–30 min)
    allow_reboot: bool = True
    direct: bool = False  #: hosts fetch from the vendor what has an http(s) URL, instead of getting it over SSH


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


class Host:
    """One host under work: its session, which a reboot replaces, and what was done so far."""

    def __init__(self, session: Session, connect: Callable[[], Session], desired: Desired, settings: Settings):
        self._session = session
        self._connect = connect
        self._desired = desired
        self._settings = settings
        self._emit = settings.emit
        self._results: list[RoleResult] = []
        self._reboots = 0

    @property
    def name(self) -> str:
        """The host's inventory name."""
        return self._desired.host

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def observe(self) -> Facts:
        """Ask every question, over one exec channel."""
        return observe(self._session, self._desired, self._settings.password)

    def look(self) -> Plan:
        """Observe and plan; jobs of an earlier run that still run are waited for first."""
        facts = self.observe()
        for job_id in jobs.running(facts):
            self._emit(events.Note(self.name, f"re-attaching to {job_id}, which an earlier run left running"))
            self._watch(job_id, lambda _: None)
        if jobs.running(facts):
            facts = self.observe()
        plan = make_plan(self._desired, facts)
        self._emit(events.Observed(self.name, plan))
        return plan

    def converge(self, expected: Plan | None = None) -> Outcome:
        """Bring the host to its stack. ``expected`` is a plan shown before: when it is stale, nothing is touched."""
        first = plan = self.look()
        if expected is not None and plan != expected:
            raise Refused(self.name, "its facts moved since the plan was saved; make a new plan and look at it")
        for _ in range(MAX_ROUNDS):
            if plan.empty:
                return self._outcome(first, plan)
            self._check(plan)
            self._apply(plan)
            after = self.look()
            if after.reboot and self._settings.allow_reboot:
                self._reboot(after.reboot)
                after = self.look()
            elif after.reboot:
                return self._outcome(first, after)
            if after == plan:
                raise NotConverged(self.name, f"everything ran, and these still differ: {_names(after)}")
            plan = after
        raise NotConverged(self.name, f"after {MAX_ROUNDS} rounds these still differ: {_names(plan)}")

    def _outcome(self, first: Plan, left: Plan) -> Outcome:
        return Outcome(self.name, first, tuple(self._results), left, self._reboots)

    def _check(self, plan: Plan) -> None:
        """Everything that must be so before the host is touched at all."""
        if plan.refusals:
            raise Refused(self.name, "; ".join(plan.refusals))
        for name in {name for change in plan.changes for name in change.artifacts}:
            artifact = self._desired.stack.artifacts[name]
            if not self._fetches(artifact):
                self._settings.locate(artifact)

    def _apply(self, plan: Plan) -> None:
        """Run the roles of a plan, each after those it needs; what failed is raised when all have ended."""
        busy = [role for role in plan.roles if role.steps]
        failures = run_in_order(
            {role.role: role.needs for role in busy},
            lambda name: self._run_role(next(role for role in busy if role.role == name)),
            skipped=lambda name, after: self._emit(events.Note(self.name, f"{name} not tried: {after} failed")),
        )
        if len(failures) > 1:
            raise SeveralFailed(self.name, failures)
        if failures:
            raise failures[0]

    def _run_role(self, plan: RolePlan) -> None:
        self._deliver(plan)
        job = jobs.Job(f"{self._settings.run_id}-{plan.role}-{secrets.token_hex(2)}", plan, probing.new_nonce())
        self._emit(events.RoleStarted(self.name, plan.role, len(plan.steps)))
        started = self._root(jobs.start_script(job), START_TIMEOUT_S)
        if started.status != 0:
            said = started.stderr.decode("utf-8", errors="replace").strip()
            raise HostError(self.name, f"{plan.role}: the job could not be started: {said or started.status}")
        reader = LogReader(plan, job.nonce)
        status = self._watch(
            job.id, lambda data: self._emit(events.RoleProgress(self.name, plan.role, reader.feed(data)))
        )
        result = reader.result(255 if status is None else status)
        self._results.append(result)
        self._emit(events.RoleFinished(self.name, plan.role, result))
        if status != 0:
            raise self._failure(plan, result)

    def _deliver(self, plan: RolePlan) -> None:
        names = dict.fromkeys(name for change in plan.changes for name in change.artifacts)
        wanted = [self._desired.stack.artifacts[name] for name in names]
        for artifact in filter(self._fetches, wanted):
            self._emit(events.Note(self.name, f"{plan.role}: the host fetches {artifact.file} from its vendor"))
            fetched = self._root(fetch_script(artifact), FETCH_TIMEOUT_S)
            if fetched.status != 0:
                said = fetched.stderr.decode("utf-8", errors="replace").strip().splitlines() or ["it does not say why"]
                raise HostError(self.name, f"{plan.role}: it cannot fetch {artifact.file}: {said[-1]}")
        pushed = [artifact for artifact in wanted if not self._fetches(artifact)]
        if pushed:
            deliver(
                self._session,
                [(artifact, self._settings.locate(artifact)) for artifact in pushed],
                password=self._settings.password,
                progress=lambda artifact, done, total: self._emit(
                    events.Delivering(self.name, plan.role, artifact.file, done, total)
                ),
            )

    def _fetches(self, artifact: Artifact) -> bool:
        """Whether the host gets this file from its vendor by itself."""
        return self._settings.direct and any(url.startswith(("http://", "https://")) for url in artifact.urls)

    def _watch(self, job_id: str, on_log: Callable[[bytes], None]) -> int | None:
        """Follow a job's log to its end; its exit status, or ``None`` when the host lost it."""
        nonce = probing.new_nonce()
        script = wrap("", jobs.watch_script(job_id, nonce), password=self._settings.password)
        output = self._session.run(
            "/bin/sh", stdin=script, timeout_s=JOB_TIMEOUT_S, cap_bytes=WATCH_CAP_BYTES, on_stdout=on_log
        )
        check_become(self.name, output)
        if output.status != 0:
            said = output.stderr.decode("utf-8", errors="replace").strip()
            raise HostError(self.name, f"the job {job_id} cannot be followed: {said}")
        return jobs.status_in(output.stderr, nonce)

    def _root(self, script: str, timeout_s: float) -> Output:
        output = self._session.run(
            "/bin/sh", stdin=wrap("", script, password=self._settings.password), timeout_s=timeout_s
        )
        check_become(self.name, output)
        return output

    def _reboot(self, reason: str) -> None:
        self._emit(events.Note(self.name, f"rebooting: {reason}"))
        self._session = reboot(
            self._session,
            self._connect,
            password=self._settings.password,
            timeout_s=self._settings.reboot_timeout_s,
            reason=reason,
        )
        self._reboots += 1
        self._emit(events.Note(self.name, "back after the reboot"))

    def _failure(self, plan: RolePlan, result: RoleResult) -> HostError:
        """The error of a role that failed: which step, what it printed last, and the cause where it is known."""
        step = next((one for one in result.steps if one.status != 0), None)
        if step is None:
            return HostError(self.name, f"{plan.role}: the job ended with status {result.status} and no step says why")
        lines = [line for line in step.output.splitlines() if line.strip()]
        known = classify(step.output)
        because = f"{known.cause}. {known.cure}" if known else (lines[-1].strip() if lines else "it printed nothing")
        ended = "was cut off" if step.status is None else f"ended with status {step.status}"
        change, script = plan.steps[step.number]
        failed = FailedStep(plan.role, change.what, script.script, step.status or 255, tuple(lines[-TAIL_LINES:]))
        return StepFailed(self.name, f"{plan.role}, {change.what}: the step {ended}: {because}", failed)


def observe(session: Session, desired: Desired, password: Secret | None) -> Facts:
    """All facts of a host that its desired state asks for, over one exec channel."""
    probes = desired.probes()
    nonce = probing.new_nonce()
    output = session.run(
        "/bin/sh",
        stdin=probing.program(probes, nonce, password),
        timeout_s=probing.OBSERVE_TIMEOUT_S,
        cap_bytes=probing.cap_bytes(probes),
    )
    check_become(desired.host, output)
    if output.truncated:
        raise ProtocolError(desired.host, "it sent far more than was asked for; its answers were thrown away")
    return probing.parse(probes, nonce, output.stdout, desired.host)


def _names(plan: Plan) -> str:
    return ", ".join(f"{role.role}: {change.what}" for role in plan.roles for change in role.changes)
