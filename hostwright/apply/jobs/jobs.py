"""Detached jobs on the host: start, watch, re-attach.

A role's program runs as a transient systemd unit (``setsid`` where there is no systemd), with its log and its exit
status on the host's disk. The controller only watches: losing the connection neither stops nor repeats a step.

A job is a directory ``/var/lib/hostwright/jobs/ID`` (root, 0700) that appears whole and holds ``run``, ``drain``,
``step-N``, ``log``, ``job.json`` (what a later controller must know to follow it) and ``boot`` (in which boot), then
``begun``, ``pid`` and, as its last act, ``status``. A host that goes down takes the job with it: without
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
from hostwright.common.quoting import sh
from hostwright.plan.host.jobs import ALIVE, JobRecord, filled, is_job_id
from hostwright.plan.model import RolePlan

KEEP_JOBS = 40  #: jobs kept on a host; of those that do not run the oldest are removed when a new one starts
KEEP_BYTES = 64 << 20  #: of all jobs together, likewise; but see the next line
KEEP_ALWAYS = 8  #: the last jobs stay, whatever their size: one run's roles, whose logs somebody may be reading now
SHUTDOWN_WAIT_S = 300  #: the running step's time to end when the host shuts down: dpkg shall not be cut in two

#: The job's own wrapper: who I am, run, and the status written last and whole. It runs the program in its own shell:
#: the process that systemd tells to stop is then the one that begins the steps. sh runs a trap when the running step
#: has ended. The status gets its room on the disk at the beginning, since a step may fill it.
_WRAPPER = """\
umask 077
mkdir "$JOB/begun" 2>/dev/null || exit 0
exec >>"$JOB/log" 2>&1 </dev/null
cd /
stopping=
finish() {
  trap - EXIT
  [ -z "$stopping" ] || exit 0
  echo "$1" >>"$JOB/status.new" && sync "$JOB/log" "$JOB/status.new" && mv "$JOB/status.new" "$JOB/status"
  sync "$JOB"
  exit 0
}
trap 'finish $?' EXIT
trap 'stopping=yes' TERM INT HUP
: >"$JOB/status.new"; fallocate -n -l 4096 "$JOB/status.new" 2>/dev/null
{ echo $$ >"$JOB/pid.new" && mv "$JOB/pid.new" "$JOB/pid"; } || exit 1
. "$JOB/run"
"""

#: Doing it twice does it once: the connection may drop before the answer comes. The directory appears whole under its
#: name; what was never begun (killed in between) is begun now, and the wrapper begins once only. What was put there
#: before the host went down may have lost its files' contents, and is put there anew.
#: OOMPolicy (systemd 243): the kernel's choice of a compiler must fail one step, and not stop the job without a word.
_START = """\
umask 077
new=
fail() { [ -z "$new" ] || rm -rf -- "$new"; echo "hostwright: the job $ID cannot be started: $1" >&2; exit 1; }
prune() {
  find . -maxdepth 1 -name '*.new' -mmin +60 -exec rm -rf -- {} + 2>/dev/null
  total=0; count=0
  ls -1t 2>/dev/null | tr '\\n' '\\0' | du -sk --files0-from=- 2>/dev/null | while read -r size old; do
    case $old in *.new) continue;; esac
    count=$((count + 1)); total=$((total + size))
    [ "$count" -ge {keep} ] || { [ "$total" -gt {keep_kib} ] && [ "$count" -gt {always} ]; } || continue
    alive "$old" || rm -rf -- "$old"
  done
}
put() {
  new=$(mktemp -d "{jobs}/$ID.XXXXXX.new") || fail 'no directory can be made in {jobs}; is the disk full?'
  base64 -d <<'{end}' | tar -x -C "$new" && echo "$boot" >"$new/boot" || fail 'its files cannot be written \
to {jobs}; is the disk full?'
{payload}
{end}
  mv -T -- "$new" "$JOB" 2>/dev/null || { [ -d "$JOB" ] && rm -rf -- "$new"; } || fail "$new cannot be renamed"
}
begin() {
  if [ -d /run/systemd/system ]; then
    oom=$(systemctl show --property=DefaultOOMPolicy 2>/dev/null)
    systemd-run --quiet --collect --unit="hostwright-$ID.service" --description="Hostwright: $ROLE" \\
      -p KillMode=mixed -p TimeoutStopSec={shutdown} ${oom:+-p OOMPolicy=continue} --setenv=JOB="$JOB" \\
      /bin/sh "$JOB/wrapper" || [ -e "$JOB/begun" ] || fail 'systemd refuses its unit'
  else
    setsid /bin/sh "$JOB/wrapper" </dev/null >/dev/null 2>&1 &
  fi
}
{ install -d -m 755 "$(dirname {jobs})" && install -d -m 700 {jobs} && cd {jobs}; } || fail 'is the disk full?'
JOB={jobs}/$ID; export JOB
boot=$(cat /proc/sys/kernel/random/boot_id)
[ ! -d "$JOB" ] || [ -e "$JOB/begun" ] || [ "$(cat "$JOB/boot")" = "$boot" ] || rm -rf -- "$JOB"
[ -d "$JOB" ] || { prune; put; }
[ -e "$JOB/begun" ] || alive "$ID" || begin
"""

#: Print the log from an offset on as it grows, until the job ends; then the status, on standard error, so that the log
#: stays the log. GNU tail ends with the keeper, which lives as long as the job does and somebody listens: that nobody
#: does is known by a sign of life that cannot be written. (tail does not look at the job's own process: where no init
#: reaps it, a dead one seems to live.) A sign of life is 31 bytes: 0.4 MB in 6 h.
_WATCH = """\
JOB={jobs}/$ID
ended() { printf '%s status %s\\n' "$WATCH" "$1" >&2; exit 0; }
keep() {
  trap '' PIPE
  n=0; while [ ! -e "$JOB/status" ]; do
    if [ $((n % 10)) -eq 0 ]; then alive "$ID" && printf '%s alive\\n' "$WATCH" >&2 || return 0; fi
    n=$((n + 1)); sleep 0.2 >/dev/null 2>&1; done
}
[ -d "$JOB" ] || ended lost
n=0; until [ -s "$JOB/pid" ] || [ -e "$JOB/status" ]; do
  [ $((n % 20)) -ne 0 ] || printf '%s alive\\n' "$WATCH" >&2
  n=$((n + 1)); [ "$n" -le 100 ] || { [ -e "$JOB/begun" ] && ended lost; echo "job $ID does not start" >&2; exit 1; }
  sleep 0.1; done
keep & keeper=$!
tail -c "+$FROM" -s 0.2 -f --pid="$keeper" "$JOB/log" &
wait "$!" || { kill "$keeper" 2>/dev/null; echo "the log of job $ID cannot be read" >&2; exit 1; }
ended "$(cat "$JOB/status" 2>/dev/null || echo lost)"
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One role's program on one host. ``id`` is its directory's name; ``nonce`` marks its steps in the log.

    ``run`` and ``operator`` say whose it is to those who find it later.
    """

    id: str
    plan: RolePlan
    nonce: str
    run: str = ""
    operator: str = ""

    def __post_init__(self) -> None:
        _require_id(self.id)

    def to_json(self) -> str:
        """The job's record: one line."""
        steps = tuple(change.what for change, _ in self.plan.steps)
        record = JobRecord(1, self.plan.role, self.nonce, self.run, self.operator, steps)
        return json.dumps(asdict(record)) + "\n"  # with json's own spaces: failure rules look for it with grep


def start_script(job: Job) -> str:
    """The commands, for root, that put the job on the host and start it detached. Running them again changes nothing.

    They exit with 0 when the job is there and was begun, now or before; else they say why not on standard error.
    """
    contents = {**files(job.plan, job.nonce), "job.json": job.to_json(), "log": "", "wrapper": _WRAPPER}
    text = filled(
        ALIVE + _START,
        keep=KEEP_JOBS,
        keep_kib=KEEP_BYTES // 1024,
        always=KEEP_ALWAYS,
        shutdown=SHUTDOWN_WAIT_S,
        end=f"END-{job.nonce}",
        payload=base64.encodebytes(_archive(contents)).decode().strip(),
    )
    return sh("ID=%s; ROLE=%s\n", job.id, job.plan.role) + text


def watch_script(job_id: str, nonce: str, from_byte: int = 1) -> str:
    """The commands, for root, that print a job's log from a byte on (1 is the first) and at last its status.

    The log goes to standard output; a sign of life every 2 s and the status go to standard error (``status_in``).
    """
    _require_id(job_id)
    return sh("ID=%s; WATCH=%s; FROM=%s\n", job_id, nonce, from_byte) + filled(ALIVE + _WATCH)


def status_in(stderr: bytes, nonce: str) -> int | None:
    """The job's exit status in a watch's standard error; ``None`` when the job was lost (the host went down)."""
    match = re.search(rb"^" + nonce.encode() + rb" status (\d{1,3}|lost)$", stderr, re.MULTILINE)
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
