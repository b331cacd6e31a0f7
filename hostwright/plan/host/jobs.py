"""Reads the jobs that run on a host; the probe for them runs on every host."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from hostwright.common.input.adapter import adapter
from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Facts, Probe

JOBS_DIR = "/var/lib/hostwright/jobs"
#: Parent directories for a job's working directory, in order of preference; /tmp and /var are often mounted noexec.
WORK_DIRS = (
    "/var/lib/hostwright/work",
    "/opt/hostwright/work",
    "/usr/local/lib/hostwright/work",
    "/tmp/hostwright-work",  # noqa: S108 - used only if it belongs to root
)
#: our estimate: disk space for the jobs of all roles at once; the driver R470 alone unpacks 1 GB
WORK_BYTES = 4_000_000_000
NOTE = "hostwright: note: "  #: prefix of a line in a step's output that is a note for the operator
#: prefix of a line in a step's output that is Hostwright's own error; more precise than errors of other programs
ERROR = "hostwright: error: "
#: our choice: maximum number of running jobs that are read; a host has fewer roles, and a role has one job at a time
MOST_RUNNING = 64
_RECORD_CAP_BYTES = 64 * 1024  #: maximum bytes read of one ``job.json``; the file of a role with 200 steps has 12 KiB
_RUNNING_CAP_BYTES = 512 * 1024


def alive_script() -> str:
    """Return shell commands that define the function ``alive``, which tests whether the job ``$1`` runs on the host."""
    return sh_file(__file__, "alive.sh", jobs=JOBS_DIR)


#: Prints one line per running job: the name of the job's directory, a space, and the content of ``job.json``.
RUNNING = Probe(
    alive_script() + sh_file(__file__, "running.sh", jobs=JOBS_DIR, cap=_RECORD_CAP_BYTES),
    root=True,
    cap_bytes=_RUNNING_CAP_BYTES,
    shared=True,
)


def begun_by(run: str) -> Probe:
    """Return a probe that lists all jobs that a run started on the host, running or ended, oldest first, in the format
    of ``RUNNING``.
    """
    script = (
        sh("cd %s 2>/dev/null || exit 0\n", JOBS_DIR)
        + sh("ls -1dtr -- %s-*/ 2>/dev/null | while IFS=/ read -r job _; do\n", run)
        + '[ -s "$job/job.json" ] || continue\n'
        + sh('printf "%%s " "$job"; head -c %s "$job/job.json" | tr -d "\\n"; echo; done', _RECORD_CAP_BYTES)
    )
    return Probe(script, root=True, cap_bytes=_RUNNING_CAP_BYTES)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The content of ``job.json`` in a job's directory."""

    schema: Literal[1]
    role: str
    nonce: Annotated[str, Field(pattern="^[A-Za-z0-9]{1,64}$")]
    run: str
    operator: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs on a host. If the file ``job.json`` is missing or damaged, only ``id`` is known."""

    id: str
    role: str = ""
    nonce: str = ""
    run: str = ""
    operator: str = ""
    steps: tuple[str, ...] = ()


def running(facts: Facts) -> tuple[RunningJob, ...]:
    """Return the jobs of earlier runs that still run on the host, at most ``MOST_RUNNING + 1``."""
    return read_jobs(facts[RUNNING].text)


def read_jobs(text: str) -> tuple[RunningJob, ...]:
    """The jobs in an answer of ``RUNNING`` or ``begun_by``, at most ``MOST_RUNNING + 1``."""
    lines = (line.partition(" ") for line in text.split("\n"))
    jobs = (_running(name, record) for name, _, record in lines if is_job_id(name))
    return tuple(islice(jobs, MOST_RUNNING + 1))


def _running(name: str, record: str) -> RunningJob:
    try:
        known = adapter(JobRecord).validate_json(record)
    except ValidationError:
        return RunningJob(name)
    return RunningJob(name, known.role, known.nonce, known.run, known.operator, known.steps)


def is_job_id(name: str) -> bool:
    """Return whether ``name`` has the form of the name of a job's directory."""
    return re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,120}", name) is not None and not name.endswith(".new")
