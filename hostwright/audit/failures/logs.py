"""Find known failures in the logs of jobs on a host.

The logs of a layer (a role on a host) are read only if the layer differs from the stack, so that a fixed failure is not
reported. The first log that contains a known failure decides. A role may add further logs (``Texts``), such as the log
of an installer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.common.quoting import sh
from hostwright.common.untrusted import Pattern
from hostwright.plan.host import jobs
from hostwright.plan.model import Probe

JOBS_CAP_BYTES = 256 * 1024  #: maximum size in bytes of the output of the probe ``LAST_JOBS``
#: probe for a host's last jobs, and for the last log lines of failed jobs
LAST_JOBS = Probe(
    sh("cd %s || exit 0\n", jobs.JOBS_DIR)
    + """ls -1t | sed 's/^/job /'
grep -H '' -- */status
grep -Hom1 '^{"schema": 1, "role": "[a-z0-9_-]*' -- */job.json
for s in $(grep -LE '^0$' -- */status); do
  j=${s%/status}; echo "log $j"; tail -n 12 "$j/log" | tail -c 4000 | sed 's/^/  /'; echo
done; exit 0""",
    root=True,
    cap_bytes=JOBS_CAP_BYTES,
)

_STATUS = Pattern(r"([a-z0-9][a-z0-9_.-]*)/status:([0-9]{1,3})")
_ROLE = Pattern(r'([a-z0-9][a-z0-9_.-]*)/job\.json:\{"schema": 1, "role": "([a-z0-9_-]+)')
_MARK = Pattern(r"\w+ (begin|end|retry) [\d. ]+")


@dataclass(frozen=True, slots=True)
class EndedJob:
    """The last job of a role on a host: its ID, its exit status, and the last line of its log if the job failed.

    The status is ``None`` if the job is still running, or if the host went down while it ran.
    """

    role: str
    id: str
    status: int | None
    last_line: str

    def __str__(self) -> str:
        how = "was interrupted before it finished" if self.status is None else f"ended with status {self.status}"
        return f"{self.role}: job {self.id} {how}" + (f": {self.last_line}" if self.last_line else "")


#: function that yields a layer's logs, each with the default rule to report
Texts: TypeAlias = Callable[[AuditContext, str], Iterator[tuple[str, str]]]


def last_job(ctx: AuditContext, role: str) -> Iterator[tuple[str, str]]:
    """Yield the log of the last job of ``role``, and an empty text instead of a default rule."""
    yield log_of(ctx.text(LAST_JOBS), role), ""


def log_cause(ctx: AuditContext, role: str, texts: Texts = last_job) -> tuple[str, str]:
    """Return the name of the first rule that matches a log of ``role``, and the matching line.

    Both texts are empty without a match, or if ``role`` is as desired. Raises ``Unread`` if a log cannot be read or a
    job is running on the host.
    """
    ctx.require(jobs.RUNNING)
    if jobs.running(ctx.facts):
        raise Unread("a job of a run is still running on the host")
    if not ctx.differs(role):
        return "", ""
    for text, otherwise in texts(ctx, role):
        if failure := ctx.named(text):
            return failure
        if otherwise:
            return otherwise, text.partition("\n")[0]
    return "", ""


def from_log(ctx: AuditContext, role: str, name: str, texts: Texts = last_job) -> Iterator[str]:
    """Yield the matching line if ``log_cause`` finds the rule ``name``.

    Raises ``Unread`` if a log cannot be read or a job is running on the host.
    """
    rule, line = log_cause(ctx, role, texts)
    if rule == name:
        yield line


def ended(text: str) -> Iterator[EndedJob]:
    """Parse ``text``, the output of the probe ``LAST_JOBS``, into the last job of each role.

    Unknown lines are skipped.
    """
    lines = text.splitlines()
    statuses = {match[1]: int(match[2]) for line in lines if (match := _STATUS.fullmatch(line))}
    roles = {match[1]: match[2] for line in lines if (match := _ROLE.fullmatch(line))}
    last_lines = _ends(lines)
    roles_seen: set[str] = set()
    for line in lines:
        job = line.removeprefix("job ")
        role = roles.get(job, "")
        if job != line and role and role not in roles_seen:
            roles_seen.add(role)
            yield EndedJob(role, job, statuses.get(job), last_lines.get(job, ""))


def _ends(lines: list[str]) -> dict[str, str]:
    """Return job ID → last line of the job's log. Hostwright's markers are ignored."""
    last_lines: dict[str, str] = {}
    job = ""
    for line in lines:
        if line.startswith("log "):
            job = line.removeprefix("log ")
        elif line.startswith("  ") and line.strip() and not _MARK.fullmatch(line.strip()):
            last_lines[job] = line.strip()
    return last_lines


def log_of(text: str, role: str) -> str:
    """Return the last log lines of the last job of ``role``, from ``text``, the output of ``LAST_JOBS``.

    Empty if that job succeeded or there is none.
    """
    job = next((ended_job for ended_job in ended(text) if ended_job.role == role), None)
    if job is None or job.status == 0:
        return ""
    own, lines = False, []
    for line in text.splitlines():
        if line.startswith("log "):
            own = line == f"log {job.id}"
        elif own and line.startswith("  "):
            lines.append(line.strip())
    return "\n".join(lines)
