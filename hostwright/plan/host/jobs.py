"""The jobs that run on a host, as the host itself tells: one question, which every host is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from hostwright.plan.model import Facts, Probe

JOBS_DIR = "/var/lib/hostwright/jobs"
_RECORD_CAP_BYTES = 64 * 1024  #: of one ``job.json``; that of a role with 200 steps has 12 KiB
_RUNNING_CAP_BYTES = 512 * 1024

#: Whether the job $1 runs: of this boot, without a status, and its process lives and is really it, since process ids
#: come again. One without a process runs when its unit does: it is just being started. Otherwise it never began.
ALIVE = """\
alive() {
  [ -d "{jobs}/$1" ] && [ ! -e "{jobs}/$1/status" ] || return 1
  if [ -s "{jobs}/$1/pid" ]; then
    [ "$(cat "{jobs}/$1/boot" 2>/dev/null)" = "$(cat /proc/sys/kernel/random/boot_id)" ] &&
      grep -qsF -- "{jobs}/$1/wrapper" "/proc/$(cat "{jobs}/$1/pid")/cmdline"
  else
    [ -d /run/systemd/system ] && systemctl is-active --quiet "hostwright-$1.service"
  fi
}
"""

#: One line for each job that runs: its directory's name, a space, its ``job.json``.
_RUNNING = (
    ALIVE
    + """\
cd {jobs} 2>/dev/null || exit 0
for job in *; do
  alive "$job" || continue
  printf '%s ' "$job"; head -c {record} "$job/job.json" 2>/dev/null | tr -d '\\n'; echo
done
exit 0
"""
)


def filled(text: str, **values: object) -> str:
    """Constant shell text with its own constants in: paths and numbers, none of which needs quoting."""
    for name, value in {"jobs": JOBS_DIR, **values}.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


RUNNING = Probe(filled(_RUNNING, record=_RECORD_CAP_BYTES), root=True, cap_bytes=_RUNNING_CAP_BYTES)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What a job's directory says of it to those who find it: ``job.json``."""

    schema: Literal[1]
    role: str
    nonce: Annotated[str, Field(pattern="^[A-Za-z0-9]{1,64}$")]
    run: str
    operator: str
    steps: tuple[str, ...]


_RECORD = TypeAdapter(JobRecord)


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs on a host. Where its record is missing or damaged, only ``id`` is known."""

    id: str
    role: str = ""
    nonce: str = ""
    run: str = ""
    operator: str = ""
    steps: tuple[str, ...] = ()


def running(facts: Facts) -> tuple[RunningJob, ...]:
    """The jobs of earlier runs that still run on the host."""
    lines = (line.partition(" ") for line in facts[RUNNING].text.split("\n"))
    return tuple(_running(name, record) for name, _, record in lines if is_job_id(name))


def _running(name: str, record: str) -> RunningJob:
    try:
        said = _RECORD.validate_json(record)
    except ValidationError:
        return RunningJob(name)
    return RunningJob(name, said.role, said.nonce, said.run, said.operator, said.steps)


def is_job_id(name: str) -> bool:
    """Whether a directory of that name can be a job's."""
    return re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,120}", name) is not None and not name.endswith(".new")
