r"""Changes → one numbered sh program; its markers → results.

A role's program is a directory of step files and a runner. The runner writes, for each step, a line with a nonce when
it begins and one with exit status and duration when it ends; everything between is the step's own output. A step that
fails for something that passes by itself is run again, as often as it may be, with a line of its own before each wait.
The runner stops at the first step that fails for good, and exits with that step's status.

The program runs in ``$JOB`` and writes to ``$JOB/log``. What a step prints goes through a named pipe, so that the log
stays bounded. The pipe is always read to its end: a step neither waits nor dies because the log or the disk is full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hostwright.apply.jobs import transient
from hostwright.common.quoting import sh
from hostwright.plan.model import RolePlan, RoleResult, StepResult

LOCK_DIR = "/run/hostwright"
LOCK_WAIT_S = 3600  #: another role of this host may hold dpkg for a whole toolkit installation
OUTPUT_CAP_BYTES = 256 * 1024  #: of one step's output kept by the controller
STEP_CAP_BYTES = 4 << 20  #: of one step's output in the log: ten times what installing 60 packages prints
JOB_CAP_BYTES = 8 << 20  #: of the log from which on each step keeps the beginning and the end of its output only
END_BYTES = transient.TAIL_BYTES  #: of a longer output its end is kept: it says what a failure was for
RESERVE_BYTES = 64 * 1024  #: of the disk, kept for the log before each step: a full disk shall be able to say so

#: Uptime does not jump when somebody sets the clock.
_PROLOGUE = """\
set -u
umask 022
LC_ALL=C; export LC_ALL
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
HOME=/root; export HOME
stopping=${stopping:-}
uptime_ms() { read -r up _ </proc/uptime; echo "${up%.*}${up#*.}0"; }
"""

#: One try. The lock is not handed on (-o): a daemon that a step leaves behind must not keep it.
_ONCE = """\
once() {
  from=$(( $(wc -c <"$JOB/log") + 1 ))
  room=$((STEP_CAP / tries))
  { [ "$from" -le "$JOB_CAP" ] && [ "$room" -gt $((2 * END)) ]; } || room=$((2 * END))
  fallocate -n -o "$from" -l "$RESERVE" "$JOB/log" 2>/dev/null || :
  setsid sh "$JOB/drain" "$room" "$END" <"$JOB/out" &
  drainer=$!
  if [ -n "$lock" ]; then
    flock -o -w "$LOCK_WAIT" "$LOCK_DIR/$lock.lock" timeout -k 30 "$limit" sh -eu "$JOB/step-$number"
  else
    timeout -k 30 "$limit" sh -eu "$JOB/step-$number"
  fi </dev/null >"$JOB/out" 2>&1
  status=$?
  drained
}
"""

#: Wait until the log has all that the step printed. Something that the step left behind may hold the pipe open; that is
#: looked for after 2 s (the links of /proc/PID/fd say who may write). It keeps a reader, opened without waiting for a
#: writer, so that it can go on printing; the next step gets a pipe of its own. A disk may need longer than 2 s.
_DRAINED = """\
drained() {
  for pause in 0.01 0.02 0.05 0.1 0.2 0.4 0.5 0.7; do
    kill -0 "$drainer" 2>/dev/null || return 0
    sleep "$pause"
  done
  pipe=$(readlink -f "$JOB/out"); n=0
  until [ "$n" -ge 60 ] || [ -n "$(find /proc/[0-9]*/fd -lname "$pipe" -perm -u=w -print -quit 2>/dev/null)" ]; do
    kill -0 "$drainer" 2>/dev/null || return 0
    n=$((n + 1)); sleep 1
  done
  exec 6<>"$JOB/out" 5<"$JOB/out" 6>&-
  cat <&5 >/dev/null 2>&1 &
  exec 5<&-
  kill -- "-$drainer" 2>/dev/null || :
  rm -f "$JOB/out"; mkfifo "$JOB/out" || exit 1
  printf '\\nhostwright: something that this step started runs on; what it prints from here on is not kept\\n'
}
"""

#: A step that fails for what passes by itself is run again; the lock is free while it waits. A host that shuts down
#: lets the running step end, and begins no other (see ``jobs``).
_STEP = """\
last() { tail -c "+$from" "$JOB/log" | tail -c "$END"; }
passes() { last | grep -aqE -- "$TRANSIENT" && ! last | grep -aqE -- "$PERMANENT"; }
step() {
  number=$1; lock=$2; limit=$3; tries=$4; try=1; backoff=$BACKOFF
  [ -z "$stopping" ] || exit 143
  begin=$(uptime_ms)
  printf '\\n%s begin %s\\n' "$NONCE" "$number"
  once
  while [ "$status" -ne 0 ] && [ "$try" -lt "$tries" ] && [ -z "$stopping" ] && passes; do
    random=$(od -An -N2 -tu2 /dev/urandom)
    wait=$((backoff + backoff * ${random:-0} / 131072))
    wait=$(printf '%d.%03d' "$((wait / 1000))" "$((wait % 1000))")
    printf '\\n%s retry %s %s %s\\n' "$NONCE" "$try" "$number" "$wait"
    sleep "$wait"
    [ -z "$stopping" ] || exit 143
    try=$((try + 1)); backoff=$((backoff * 2)); [ "$backoff" -le "$BACKOFF_MAX" ] || backoff=$BACKOFF_MAX
    once
  done
  printf '\\n%s end %s %s %s\\n' "$NONCE" "$number" "$status" "$(( $(uptime_ms) - begin ))"
  return "$status"
}
mkdir -p "$LOCK_DIR"
[ -p "$JOB/out" ] || mkfifo "$JOB/out" || exit 1
"""

#: Its standard input to its standard output, as it comes; of more than $1 bytes the beginning and the last $2. It reads
#: on when nothing can be written. stdbuf: head would hand on nothing before it has 4 KiB.
_DRAIN = """\
stdbuf -o0 head -c "$(($1 - $2))"
rest=$(tail -c "$(($2 + 1))"; echo .)
rest=${rest%.}
if [ "${#rest}" -gt "$2" ]; then
  rest=${rest#?}
  printf '\\nhostwright: %s bytes of this output are kept: those above, and its last %s:\\n' "$1" "$2"
fi
printf %s "$rest"
"""


def runner(plan: RolePlan, nonce: str) -> str:
    """The sh program that runs a role's steps in order, given ``$JOB``, the directory that holds their files."""
    calls = [
        sh("step %s %s %s %s || exit $?", number, step.lock, f"{step.timeout_s:g}", max(1, step.tries))
        for number, (_, step) in enumerate(plan.steps)
    ]
    settings = [
        sh("NONCE=%s; LOCK_DIR=%s; LOCK_WAIT=%s", nonce, LOCK_DIR, LOCK_WAIT_S),
        sh("STEP_CAP=%s; JOB_CAP=%s; END=%s; RESERVE=%s", STEP_CAP_BYTES, JOB_CAP_BYTES, END_BYTES, RESERVE_BYTES),
        sh("BACKOFF=%s; BACKOFF_MAX=%s", _ms(transient.BACKOFF_S), _ms(transient.BACKOFF_MAX_S)),
        sh("TRANSIENT=%s; PERMANENT=%s\n", transient.TRANSIENT_ERE, transient.PERMANENT_ERE),
    ]
    return _PROLOGUE + "\n".join(settings) + _ONCE + _DRAINED + _STEP + "\n".join(calls) + "\nexit 0\n"


def files(plan: RolePlan, nonce: str) -> dict[str, str]:
    """The files of a role's job directory: ``run``, ``drain`` for what a step prints, and one ``step-N`` a step."""
    steps = {f"step-{number}": step.script + "\n" for number, (_, step) in enumerate(plan.steps)}
    return {"run": runner(plan, nonce), "drain": _DRAIN, **steps}


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Retry:
    """A step failed for something that passes: it is run again for the ``number``-th time, after ``wait_s`` seconds."""

    number: int
    wait_s: float
    reason: str  #: the line of its output that names the cause


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a running role stands: the number of the step that runs (``None`` between steps), its last line.

    ``retry`` is the last repetition of the step that runs, from its announcement to the step's end.
    """

    number: int | None
    what: str
    last_line: str
    retry: Retry | None = None


class LogReader:
    """Reads a role's log as it grows, in pieces of any size, and turns its markers into step results.

    ``steps`` says what each step is for, in order. ``bytes`` is how much of the log it was given: a watch whose
    connection broke goes on with the byte after that.
    """

    def __init__(self, role: str, steps: Sequence[str], nonce: str):
        self._role = role
        self._steps = tuple(steps)
        self._marker = re.compile(
            rf"{re.escape(nonce)} (?:(begin) ([0-9]{{1,6}})|(end) ([0-9]{{1,6}}) ([0-9]{{1,3}}) (-?[0-9]{{1,12}})"
            r"|(retry) ([0-9]{1,6}) ([0-9]{1,6}) ([0-9]{1,6}\.[0-9]{3}))"
        )
        self._rest = b""
        self._running: int | None = None
        self._output: list[str] = []
        self._size = 0
        self._last = ""
        self._retry: Retry | None = None
        self.bytes = 0
        self.results: list[StepResult] = []

    def feed(self, data: bytes) -> Progress:
        """Take the next piece of the log; say where the role stands."""
        self.bytes += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > OUTPUT_CAP_BYTES:  # a line without an end is a progress bar or an attack: keep its tail
            self._rest = self._rest[-4096:]
        for raw in lines:
            self._line(raw.decode("utf-8", errors="replace"))
        return Progress(self._running, self._what(self._running), self._last, self._retry)

    def _what(self, number: int | None) -> str:
        return self._steps[number] if number is not None and number < len(self._steps) else ""

    def _line(self, line: str) -> None:
        match = self._marker.fullmatch(line)
        words = [word for word in match.groups() if word is not None] if match else []
        match words:
            case ["begin", number]:
                self._running, self._output, self._size, self._retry = int(number), [], 0, None
            case ["retry", number, _, wait_s] if self._running is not None:
                self._retry = Retry(int(number), float(wait_s), transient.reason("\n".join(self._output)))
                self._keep(f"hostwright: transient failure, retrying in {float(wait_s):.0f} s")
            case ["end", number, status, duration_ms] if self._running is not None:
                self._end(int(number), int(status), int(duration_ms) / 1000)
            case []:
                self._keep(line)

    def _end(self, number: int, status: int, duration_s: float) -> None:
        text = "\n".join(self._output).rstrip("\n")
        self.results.append(StepResult(number, self._what(number), status, duration_s, text, self._tries()))
        self._running = self._retry = None

    def _tries(self) -> int:
        return 1 + (self._retry.number if self._retry else 0)

    def _keep(self, line: str) -> None:
        visible = line.rsplit("\r", 1)[-1].strip()
        self._last = visible or self._last
        self._size += len(line) + 1
        self._output.append(line)
        while self._size > OUTPUT_CAP_BYTES and len(self._output) > 1:
            self._size -= len(self._output.pop(0)) + 1

    def result(self, status: int) -> RoleResult:
        """The role's result, given its exit status; a step that began and never ended is there without a status."""
        steps = list(self.results)
        if self._running is not None:
            text = "\n".join([*self._output, self._rest.decode("utf-8", errors="replace")]).rstrip("\n")
            steps.append(StepResult(self._running, self._what(self._running), None, 0.0, text, self._tries()))
        return RoleResult(self._role, status, sum(step.duration_s for step in steps), tuple(steps))
