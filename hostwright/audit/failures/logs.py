"""What jobs wrote on a host, as long as it still matters: a log of a failure that was mended since is history.

Of a layer that differs from the stack its logs are read, and the first in which a known failure is named decides. A
role may have further logs (``Texts``), such as those of an installer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hostwright.audit.judging.look import Look, Unread
from hostwright.common.quoting import sh
from hostwright.plan.host import jobs
from hostwright.plan.model import Probe

JOBS_CAP_BYTES = 256 * 1024  #: forty jobs with the ends of their logs
#: ``job ID``, the newest first; ``ID/status:N``; ``ID/job.json:{"schema": 1, "role": "ROLE``; and, with ``log ID``
#: before it and two spaces before each line, the end of the log of each that failed.
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

_STATUS = re.compile(r"([a-z0-9][a-z0-9_.-]*)/status:(\d{1,3})", re.ASCII)
_ROLE = re.compile(r'([a-z0-9][a-z0-9_.-]*)/job\.json:\{"schema": 1, "role": "([a-z0-9_-]+)', re.ASCII)
_MARK = re.compile(r"\w+ (begin|end|retry) [\d. ]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class EndedJob:
    """The last job of a role: its id, exit status, and the last line of its log where it failed.

    One without a status still runs, or the host went down while it ran.
    """

    role: str
    id: str
    status: int | None
    said: str

    def __str__(self) -> str:
        how = "was cut off before it ended" if self.status is None else f"ended with status {self.status}"
        return f"{self.role}: job {self.id} {how}" + (f": {self.said}" if self.said else "")


#: a layer's logs, the newest and most precise first, each with the rule for what is in it and no other rule knows
Texts: TypeAlias = Callable[[Look, str], Iterator[tuple[str, str]]]


def last_job(look: Look, role: str) -> Iterator[tuple[str, str]]:
    """The log of a layer's last job, as the only one that it has."""
    yield _last_job(look.text(LAST_JOBS), role), ""


def told(look: Look, role: str, texts: Texts = last_job) -> tuple[str, str]:
    """The rule whose message is in the newest log of a layer that differs, and the line; two empty texts for none.

    Raises ``Unread``, also while a job is at work on the host.
    """
    look.answer(jobs.RUNNING)
    if jobs.running(look.facts):
        raise Unread("a job is at work on the host")
    if not look.differs(role):
        return "", ""
    for text, otherwise in texts(look, role):
        if failure := look.named(text):
            return failure
        if otherwise:
            return otherwise, text.partition("\n")[0]
    return "", ""


def from_log(look: Look, role: str, name: str, texts: Texts = last_job) -> Iterator[str]:
    """The line by which this rule is told in the newest log of a layer that differs. Raises ``Unread``."""
    rule, line = told(look, role, texts)
    if rule == name:
        yield line


def ended(text: str) -> Iterator[EndedJob]:
    """The last job of each role in the answer to ``LAST_JOBS``; what is no line of its is passed over."""
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
    """Job → the last line of its log that is not a marker of ours."""
    last_lines: dict[str, str] = {}
    job = ""
    for line in lines:
        if line.startswith("log "):
            job = line.removeprefix("log ")
        elif line.startswith("  ") and line.strip() and not _MARK.fullmatch(line.strip()):
            last_lines[job] = line.strip()
    return last_lines


def _last_job(text: str, role: str) -> str:
    """The end of the log of a role's last job where that failed, out of the answer to ``LAST_JOBS``."""
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
