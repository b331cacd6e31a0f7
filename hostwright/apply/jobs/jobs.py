"""Detached jobs on the host: start, watch, re-attach.

A role's program runs as a transient systemd unit (``setsid`` where there is no systemd), with its log and its exit
status on the host's disk. The controller only watches: losing the connection neither stops nor repeats a step.

A job is a directory ``/var/lib/hostwright/jobs/ID`` (root, 0700) that appears whole and holds ``run``, ``drain``,
``retries``, ``step-N``, ``log``, ``job.json`` (what a later controller must know to follow it) and ``boot`` (in which
boot), then ``begun``, ``pid`` and, as its last act, ``status``. A host that goes down takes the job with it: without
``status`` and in another boot it is *lost*. One that shuts down in order waits for the running step, begins no other,
and leaves the job without ``status`` as well.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from dataclasses import asdict, dataclass

from hostwright.apply.jobs.scripting import files
from hostwright.common.quoting import sh_file
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.host.jobs import JobRecord, alive_script, is_job_id
from hostwright.plan.model import RetryRule, RolePlan

KEEP_JOBS = 40  #: our choice: jobs kept on a host; the oldest that do not run are removed when a new one starts
KEEP_BYTES = 64 << 20  #: of all jobs together, likewise; but see the next line
KEEP_ALWAYS = 8  #: the last jobs stay, whatever their size: one run's roles, whose logs somebody may be reading now
SHUTDOWN_WAIT_S = 300  #: our choice, for the running step when the host shuts down: dpkg must not be cut off


@dataclass(frozen=True, slots=True)
class Job:
    """One role's program on one host. ``id`` is its directory's name; ``nonce`` marks its steps in the log.

    ``run`` and ``operator`` say whose it is to those who find it later. ``retry_rules`` say which failures are retried,
    ``remaining_s`` how much is left when each step begins (``scripting.runner``).
    """

    id: str
    plan: RolePlan
    nonce: str
    run: str = ""
    operator: str = ""
    retry_rules: tuple[RetryRule, ...] = ()
    remaining_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _require_id(self.id)

    def to_json(self) -> str:
        """The job's record: one line."""
        steps = tuple(change.what for change, _ in self.plan.steps)
        record = JobRecord(1, self.plan.role, self.nonce, self.run, self.operator, steps)
        return json.dumps(asdict(record)) + "\n"  # with json's own spaces: failure rules look for it with grep


def start_script(job: Job) -> str:
    """The commands, for root, that put the job on the host and start it detached. Running them again changes nothing.

    They exit with 0 once the job is on the host and was started, now or before; else with 1 and the reason on standard
    error.
    """
    wrapper = sh_file(__file__, "wrapper.sh")
    program = files(job.plan, job.nonce, job.retry_rules, job.remaining_s)
    contents = {**program, "job.json": job.to_json(), "log": "", "wrapper": wrapper}
    return alive_script() + sh_file(
        __file__,
        "start.sh",
        jobs=hostjobs.JOBS_DIR,
        job_id=job.id,
        role=job.plan.role,
        keep=KEEP_JOBS,
        keep_kib=KEEP_BYTES // 1024,
        keep_always=KEEP_ALWAYS,
        shutdown_wait_s=SHUTDOWN_WAIT_S,
        work_dirs=hostjobs.WORK_DIRS,
        payload=base64.encodebytes(_archive(contents)).decode().strip(),
    )


def watch_script(job_id: str, nonce: str, from_byte: int = 1) -> str:
    """The commands, for root, that print a job's log from a byte on (1 is the first) and at last its status.

    The log goes to standard output; a sign of life every 2 s and the status go to standard error (``status_in``).
    """
    _require_id(job_id)
    place = {"jobs": hostjobs.JOBS_DIR, "job_id": job_id}
    return alive_script() + sh_file(__file__, "watch.sh", **place, nonce=nonce, from_byte=from_byte)


def status_in(stderr: bytes, nonce: str) -> int | None:
    """The job's exit status in a watch's standard error; ``None`` when the job was lost (the host went down).

    >>> status_in(b"n0nce alive\\nn0nce status 3\\n", "n0nce")
    3
    """
    match = re.search(rb"^" + nonce.encode() + rb" status ([0-9]{1,3}|lost)$", stderr, re.MULTILINE)
    return None if match is None or match[1] == b"lost" else int(match[1])


def _require_id(name: str) -> None:
    if not is_job_id(name):
        raise ValueError(f"not a job id: {name!r}")


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
