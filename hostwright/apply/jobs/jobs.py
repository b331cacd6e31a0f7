"""Detached jobs on a host: start them, follow their logs, and attach to them again after a lost connection.

A role's program runs as a transient systemd unit (``setsid`` on a host without systemd). Its log and its exit status
are files on the host. The controller only reads these files: a lost connection neither stops nor repeats a step.

A job is a directory ``/var/lib/hostwright/jobs/ID`` (root, 0700), created atomically. The directory contains ``run``,
``drain``, ``retries``, ``step-N``, ``log``, ``job.json`` (the data that a later controller needs to follow the job) and
``boot`` (the boot ID). The job then writes ``begun``, ``pid`` and, at its end, ``status``.

A crash of the host ends the job: a job without ``status`` from an earlier boot is *lost*. An orderly shutdown waits for
the running step and starts no other step; that job has no ``status`` either.
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

#: maximum number of recorded jobs on a host (our choice). The oldest jobs that are not running are removed.
KEEP_JOBS = 40
#: maximum total number of bytes of all jobs' files on a host (our choice). ``KEEP_ALWAYS`` takes precedence.
KEEP_BYTES = 64 << 20
KEEP_ALWAYS = 8  #: minimum number of latest jobs to keep on a host, enough for the roles of one run
#: seconds that a host's shutdown waits for the running step, so that dpkg is not killed (our choice)
SHUTDOWN_WAIT_S = 300


@dataclass(frozen=True, slots=True)
class Job:
    """The program of one role on one host, as a detached job.

    ``id`` is the name of the job's directory; ``nonce`` marks the job's steps in the log. ``run`` and ``operator`` show
    later runs who started the job. ``remaining_s`` has the seconds of work left at the start of each step.
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
        """Return the content of the job's file ``job.json``, a record for later controllers, as one line."""
        steps = tuple(change.what for change, _ in self.plan.steps)
        record = JobRecord(1, self.plan.role, self.nonce, self.run, self.operator, steps)
        # Rules for known failures search this text, so json's default spaces must stay.
        return json.dumps(asdict(record)) + "\n"


def start_script(job: Job) -> str:
    """Return idempotent commands for root that create ``job`` on the host and start it detached.

    The commands exit with 0 if the job exists and was started by this or an earlier call. Otherwise they exit with
    status 1, and print the reason to standard error.
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
    """Return commands for root that print a job's log from ``from_byte`` on, then the job's status.

    The first byte is number 1. The log goes to standard output. A keepalive every 2 s and the status go to standard
    error (``status_in``).
    """
    _require_id(job_id)
    place = {"jobs": hostjobs.JOBS_DIR, "job_id": job_id}
    return alive_script() + sh_file(__file__, "watch.sh", **place, nonce=nonce, from_byte=from_byte)


def status_in(stderr: bytes, nonce: str) -> int | None:
    """Return the exit status of a job from the standard error of ``watch_script``; ``None`` if the job was lost.

    >>> status_in(b"n0nce alive\\nn0nce status 3\\n", "n0nce")
    3
    """
    match = re.search(rb"^" + nonce.encode() + rb" status ([0-9]{1,3}|lost)$", stderr, re.MULTILINE)
    return None if match is None or match[1] == b"lost" else int(match[1])


def _require_id(name: str) -> None:
    if not is_job_id(name):
        raise ValueError(f"not a job ID: {name!r}")


def _archive(contents: dict[str, str]) -> bytes:
    """Return a tar archive of ``contents`` (name → text). All files have mode 0600 and the owner root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in contents.items():
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o600
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
