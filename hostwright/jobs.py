"""Detached jobs on the host: start, watch, re-attach.

A role's program runs as a transient systemd unit (``setsid`` where there is no systemd), with its log and its exit
status on the host's disk. The controller only watches: losing the connection neither stops nor repeats a step.

A job is a directory ``/var/lib/hostwright/jobs/ID`` (root, 0700) that holds ``run``, ``step-N``, ``log``, ``pid``,
``boot`` (the boot in which it ran) and, as its last act, ``status``.
"""

from __future__ import annotations

import base64
import io
import re
import tarfile
from dataclasses import dataclass

from hostwright.model import Facts, Probe, RolePlan
from hostwright.quoting import sh
from hostwright.scripting import files

JOBS_DIR = "/var/lib/hostwright/jobs"
KEEP_JOBS = 40  #: finished jobs kept on a host; older ones are removed when a new one starts

#: One line for each job that still runs: its directory's name.
RUNNING = Probe(
    f"cd {JOBS_DIR} 2>/dev/null || exit 0; for job in *; do "
    '[ -e "$job/status" ] || { [ "$(cat "$job/boot" 2>/dev/null)" = "$(cat /proc/sys/kernel/random/boot_id)" ] && '
    'kill -0 "$(cat "$job/pid" 2>/dev/null)" 2>/dev/null && echo "$job"; }; done; exit 0',
    root=True,
)

_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,120}")

#: The job's own wrapper: who I am, run, and the status written last and whole.
_WRAPPER = """\
umask 077
exec >>"$JOB/log" 2>&1 </dev/null
cat /proc/sys/kernel/random/boot_id >"$JOB/boot"
echo $$ >"$JOB/pid.new" && mv "$JOB/pid.new" "$JOB/pid"
sh "$JOB/run"
echo $? >"$JOB/status.new" && sync "$JOB/status.new" && mv "$JOB/status.new" "$JOB/status"
"""

_START = """\
install -d -m 755 "$(dirname {jobs})" && install -d -m 700 {jobs} && cd {jobs} || exit 1
umask 077
ls -1t | tail -n +{keep} | while read -r old; do if [ -e "$old/status" ]; then rm -rf -- "$old"; fi; done
JOB={jobs}/$ID; export JOB
rm -rf -- "$JOB.new"; mkdir "$JOB.new"
base64 -d <<'{end}' | tar -x -C "$JOB.new" || exit 1
{payload}
{end}
mv -T -- "$JOB.new" "$JOB" || exit 1
if [ -d /run/systemd/system ]; then
  systemd-run --quiet --collect --unit="hostwright-$ID" --description="Hostwright: $ROLE" \\
    -p KillMode=mixed -p TimeoutStopSec=5min --setenv=JOB="$JOB" /bin/sh "$JOB/wrapper" || exit 1
else
  setsid /bin/sh "$JOB/wrapper" &
fi
"""

#: Print the log from an offset on as it grows, until the job ends; then the status, on standard error, so that the log
#: stays the log. GNU tail ends with the process.
_WATCH = """\
JOB={jobs}/$ID
n=0; until [ -s "$JOB/pid" ] || [ -e "$JOB/status" ]; do
  n=$((n+1)); [ "$n" -lt 300 ] || { echo "job $ID does not start" >&2; exit 1; }; sleep 0.1; done
if [ -e "$JOB/status" ]; then tail -c "+$FROM" "$JOB/log"; else
  tail -c "+$FROM" -s 0.2 -f --pid="$(cat "$JOB/pid")" "$JOB/log"; fi
printf '%s status %s\\n' "$WATCH" "$(cat "$JOB/status" 2>/dev/null || echo lost)" >&2
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One role's program on one host. ``id`` is its directory's name; ``nonce`` marks its steps in the log."""

    id: str
    plan: RolePlan
    nonce: str

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"not a job id: {self.id!r}")


def start_script(job: Job) -> str:
    """The commands, for root, that put the job on the host and start it detached."""
    payload = base64.encodebytes(_archive({**files(job.plan, job.nonce), "wrapper": _WRAPPER})).decode()
    text = _START.replace("{jobs}", JOBS_DIR).replace("{keep}", str(KEEP_JOBS)).replace("{payload}", payload.strip())
    return sh("ID=%s; ROLE=%s\n", job.id, job.plan.role) + text.replace("{end}", f"END-{job.nonce}")


def watch_script(job_id: str, nonce: str, from_byte: int = 1) -> str:
    """The commands, for root, that print a job's log from a byte on (1 is the first) and at last its status."""
    return sh("ID=%s; WATCH=%s; FROM=%s\n", job_id, nonce, from_byte) + _WATCH.replace("{jobs}", JOBS_DIR)


def status_in(stderr: bytes, nonce: str) -> int | None:
    """The job's exit status in a watch's standard error; ``None`` when the job was lost (the host went down)."""
    match = re.search(rb"^" + nonce.encode() + rb" status (\d+|lost)$", stderr, re.MULTILINE)
    return None if match is None or match[1] == b"lost" else int(match[1])


def running(facts: Facts) -> tuple[str, ...]:
    """The jobs of earlier runs that still run on the host."""
    return tuple(line for line in facts[RUNNING].text.split() if _ID.fullmatch(line))


def _archive(contents: dict[str, str]) -> bytes:
    """A tar of these files, mode 0600, owned by root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in contents.items():
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o600
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
