"""Reads which jobs run on a host. A job is a role's program that Hostwright started there."""

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
#: parent directories of a job's working directory, in order of preference. /tmp and /var are often mounted noexec.
WORK_DIRS = (
    "/var/lib/hostwright/work",
    "/opt/hostwright/work",
    "/usr/local/lib/hostwright/work",
    "/tmp/hostwright-work",  # noqa: S108 - used only if it belongs to root
)
#: disk space in bytes for the jobs of all roles together (our estimate; the driver R470 alone unpacks 1 GB)
WORK_BYTES = 4_000_000_000
NOTE = "hostwright: note: "  #: prefix of a step's output line that is a note for the operator
#: prefix of a step's output line that is Hostwright's own error
ERROR = "hostwright: error: "
#: maximum number of running jobs to read from a host (our choice)
MOST_RUNNING = 64
_RECORD_CAP_BYTES = 64 * 1024  #: maximum number of bytes to read from a ``job.json``. A file with 200 steps has 12 KiB.
_RUNNING_CAP_BYTES = 512 * 1024


def alive_script() -> str:
    """Return the definition of the shell function ``alive``, which tests whether the job named ``$1`` runs."""
    return sh_file(__file__, "alive.sh", jobs=JOBS_DIR)


#: probe that prints the directory name and ``job.json`` of each running job, line by line
RUNNING = Probe(
    alive_script() + sh_file(__file__, "running.sh", jobs=JOBS_DIR, cap=_RECORD_CAP_BYTES),
    root=True,
    cap_bytes=_RUNNING_CAP_BYTES,
    shared=True,
)


def begun_by(run: str) -> Probe:
    """Return a probe that lists all jobs of the run with the ID ``run``, running or ended, oldest first.

    Its output has the format of ``RUNNING``.
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
    """The content of the file ``job.json`` in a job's directory on a host."""

    schema: Literal[1]
    role: str
    nonce: Annotated[str, Field(pattern="^[A-Za-z0-9]{1,64}$")]
    run: str
    operator: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs on a host. Only ``id`` is known if the job has no valid ``job.json``."""

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
    """Parse the output of ``RUNNING`` or ``begun_by`` to at most ``MOST_RUNNING + 1`` jobs."""
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
    """Return whether ``name`` has the form of a job's directory name."""
    return re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,120}", name) is not None and not name.endswith(".new")
