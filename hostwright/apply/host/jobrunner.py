"""Runs the job of one role on one host: delivers its files, starts its program, and follows its log to the end.

After a lost connection, a new connection continues to read the log at the same byte.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from hostwright.apply import events
from hostwright.apply.delivery.delivery import Delivery
from hostwright.apply.host.connection import HostConnection
from hostwright.apply.host.explaining import last_line, units_named
from hostwright.apply.jobs import jobs, scripting, transient
from hostwright.apply.jobs.scripting import LogReader
from hostwright.common.errors import ArtifactError, FailedStep, Finding, HostError, StepFailed
from hostwright.plan import probing
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.model import RetryRule, RolePlan, RoleResult, StepResult
from hostwright.stack.stack import Artifact
from hostwright.transport.root.rootshell import RootShell

if TYPE_CHECKING:
    from hostwright.apply.run import Run

MOST_NOTES = 50  #: maximum number of notes shown for one job (our choice)
MOST_ERRORS = 3  #: maximum number of errors shown for one failed step
TAIL_LINES = 15  #: number of last lines of a failed step's output that the operator sees
#: time limit in seconds of one wait for a job's end (our choice). The steps have shorter limits on the host.
JOB_TIMEOUT_S = 6 * 3600.0
WATCH_IDLE_S = 8.0  #: seconds without output after which watch.sh counts as dead. watch.sh prints a line every 2 s.
START_TIMEOUT_S = 120.0
#: maximum number of bytes to read from watch.sh. A job's log has at most 12 MiB, and 128 KiB for each further try.
WATCH_CAP_BYTES = 16 << 20
STEP_MORE_BYTES = 2 << 20  #: number of bytes that each step adds to ``WATCH_CAP_BYTES``, enough for 16 tries


class JobLost(HostError):
    """A job ended without an exit status, because the host went down or the job was killed."""


@dataclass(frozen=True, slots=True)
class JobRunner:
    """Runs the jobs of a run on one host. ``delivery`` delivers the jobs' files; without ``delivery``, no job may need
    files.
    """

    connection: HostConnection
    run: Run
    delivery: Delivery | None = None

    @property
    def host(self) -> str:
        """The inventory name of the host."""
        return self.connection.host

    def execute(self, plan: RolePlan, artifacts: Sequence[Artifact], remaining_s: tuple[float, ...] = ()) -> RoleResult:
        """Deliver ``artifacts``, run the steps of ``plan`` as a job, and return the result of the job, even if the job
        failed.

        ``remaining_s`` has the seconds of work left at the start of each step (``scripting.runner``).

        Raises ``JobLost`` if the job ended without an exit status, and ``ArtifactError`` if a file cannot be delivered.
        Raises ``HostError`` if the job cannot be started or the host stays unreachable. A started job continues on the
        host.
        """
        self._deliver(plan.role, artifacts)
        name = f"{self.run.id}-{plan.role}-{secrets.token_hex(2)}"
        repeated = any(step.tries > 1 for _, step in plan.steps)
        rules = self._retry_rules() if repeated else ()
        job = jobs.Job(name, plan, probing.new_nonce(), self.run.id, self.run.stamp.operator, rules, remaining_s)
        failure = f"{plan.role}: the job could not be started"
        self.connection.run(jobs.start_script(job), timeout_s=START_TIMEOUT_S, failure=failure)
        self.run.emit(events.RoleStarted(self.host, plan.role, len(plan.steps), job.id))
        return self.follow(job.id, plan.role, [change.what for change, _ in plan.steps], job.nonce)

    def _retry_rules(self) -> tuple[RetryRule, ...]:
        return self.run.roster.knowledge.retry_rules(self.run.roster)

    def attach(self, job: hostjobs.RunningJob) -> RoleResult:
        """Follow ``job``, which an earlier run has started, to its end. Raises the exceptions of ``execute``."""
        self.run.emit(events.Attached(self.host, job.role, len(job.steps), job.id, job.run, job.operator))
        return self.follow(job.id, job.role, job.steps, job.nonce)

    def follow(self, job_id: str, role: str, steps: Sequence[str], nonce: str) -> RoleResult:
        """Read a job's log to its end, over as many connections as necessary. Raises the exceptions of ``execute``.

        ``steps`` are the descriptions of the job's steps. ``nonce`` marks the log lines of the job's program; all other
        lines are output of the steps.
        """
        reader = LogReader(role, steps, nonce, lambda text: transient.reason(self._retry_rules(), text))

        told: set[str] = set()

        def take(data: bytes) -> None:
            progress = reader.feed(data)
            self.run.emit(events.RoleProgress(self.host, role, progress))
            if progress.waits and progress.waits not in told:
                told.add(progress.waits)
                self.run.emit(events.Note(self.host, f"{role}: the job waits for {progress.waits}"))

        cap_bytes = WATCH_CAP_BYTES + STEP_MORE_BYTES * min(len(steps), scripting.MOST_STEPS)
        status = self.connection.use(
            lambda shell: self._watch(shell, job_id, reader.bytes + 1, take, max(0, cap_bytes - reader.bytes)),
            steady=True,
        )
        result = reader.result(255 if status is None else status)
        for note in islice(dict.fromkeys(_own_lines(result, hostjobs.NOTE)), MOST_NOTES):
            self.run.emit(events.Note(self.host, f"{role}: {note}"))
        self.run.emit(events.RoleFinished(self.host, role, result))
        if status is None:
            raise JobLost(self.host, f"{role}: the job {job_id} disappeared: the host went down, or the job was killed")
        return result

    def _watch(
        self, shell: RootShell, job_id: str, from_byte: int, take: Callable[[bytes], None], cap_bytes: int
    ) -> int | None:
        nonce = probing.new_nonce()
        output = shell.run(
            jobs.watch_script(job_id, nonce, from_byte),
            failure=f"the job {job_id} cannot be followed",
            timeout_s=JOB_TIMEOUT_S,
            idle_s=WATCH_IDLE_S,
            cap_bytes=cap_bytes,
            on_stdout=take,
        )
        return jobs.status_in(output.stderr, nonce)

    def _deliver(self, role: str, artifacts: Sequence[Artifact]) -> None:
        if self.delivery is not None:
            self.delivery.wait(artifacts)
        elif artifacts:
            raise ArtifactError(f"{role}: needs the file {artifacts[0].name}, but this command sends no files")


def _own_lines(result: RoleResult, prefix: str) -> Iterator[str]:
    lines = (line for step in result.steps for line in step.output.splitlines())
    return (line.removeprefix(prefix) for line in lines if line.startswith(prefix))


def failures(
    host: str,
    plan: RolePlan,
    result: RoleResult,
    explain: Callable[[str], Finding | None],
    clean: Callable[[str], str] = str,
) -> tuple[list[StepFailed], HostError | None]:
    """Return the errors of the changes marked ``alone`` in a failed role, and the error that ended the role.

    ``explain`` returns the known problem in a step's output; ``clean`` masks secrets in the output.
    """
    failed = [replace(step, output=clean(step.output)) for step in result.steps if step.status != 0]
    errors = [_failure(host, plan, step, explain) for step in failed]
    if failed and failed[-1].status is not None and plan.steps[failed[-1].number][0].alone:
        return errors, None
    if failed:
        return errors[:-1], errors[-1]
    sentence = f"{plan.role}: the job ended with status {result.status}, but no step reported an error"
    return [], HostError(host, sentence)


def _failure(host: str, plan: RolePlan, step: StepResult, explain: Callable[[str], Finding | None]) -> StepFailed:
    lines = [line for line in step.output.splitlines() if line.strip()]
    known = explain(step.output)
    because = _errors(lines, explain) or _told(known) or last_line(lines)
    ended = "did not finish" if step.status is None else f"ended with status {step.status}"
    tries = f" after {step.tries} tries" if step.tries > 1 else ""
    change, script = plan.steps[step.number]
    tail, units = tuple(lines[-TAIL_LINES:]), units_named(step.output)
    failed = FailedStep(plan.role, change.what, script.script, step.status or 255, tail, known, units)
    return StepFailed(host, f"{plan.role}, {change.what}: the step {ended}{tries}: {because}", failed)


def _told(known: Finding | None) -> str:
    return f"{known.cause}. {known.cure}" if known else ""


def _errors(lines: list[str], explain: Callable[[str], Finding | None]) -> str:
    errors = dict.fromkeys(line.removeprefix(hostjobs.ERROR) for line in lines if line.startswith(hostjobs.ERROR))
    by_cause: dict[str, list[str]] = {}
    for error in tuple(errors)[:MOST_ERRORS]:
        by_cause.setdefault(_told(explain(error)), []).append(error)
    more = f" (and {len(errors) - MOST_ERRORS} more)" if len(errors) > MOST_ERRORS else ""
    return " · ".join("; ".join(same) + (f". {cause}" if cause else "") for cause, same in by_cause.items()) + more
