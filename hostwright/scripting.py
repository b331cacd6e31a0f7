r"""Changes → one numbered sh program; its markers → results.

A role's program is a directory of step files and a runner. The runner writes, for each step, a line with a nonce when
it begins and one with exit status and duration when it ends; everything between is the step's own output. It stops at
the first step that fails, and its last act is to write the role's exit status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hostwright.model import RolePlan, RoleResult, StepResult
from hostwright.quoting import sh

LOCK_DIR = "/run/hostwright"
LOCK_WAIT_S = 3600  #: another role of this host may hold dpkg for a whole toolkit installation
OUTPUT_CAP_BYTES = 256 * 1024  #: of one step's output kept by the controller; the host's log has all of it

#: Uptime does not jump when somebody sets the clock.
_PROLOGUE = """\
set -u
umask 022
LC_ALL=C; export LC_ALL
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
HOME=/root; export HOME
uptime_ms() { read -r up _ </proc/uptime; echo "${up%.*}${up#*.}0"; }
step() {
  number=$1; lock=$2; limit=$3
  begin=$(uptime_ms)
  printf '%s begin %s\\n' "$NONCE" "$number"
  if [ -n "$lock" ]; then
    flock -w "$LOCK_WAIT" "$LOCK_DIR/$lock.lock" timeout -k 30 "$limit" sh -eu "$JOB/step-$number" </dev/null
  else
    timeout -k 30 "$limit" sh -eu "$JOB/step-$number" </dev/null
  fi
  status=$?
  printf '\\n%s end %s %s %s\\n' "$NONCE" "$number" "$status" "$(( $(uptime_ms) - begin ))"
  return "$status"
}
"""


def runner(plan: RolePlan, nonce: str) -> str:
    """The sh program that runs a role's steps in order, given ``$JOB``, the directory that holds their files."""
    calls = [
        sh("step %s %s %s || exit $?", number, step.lock, f"{step.timeout_s:g}")
        for number, (_, step) in enumerate(plan.steps)
    ]
    settings = sh("NONCE=%s; LOCK_DIR=%s; LOCK_WAIT=%s\n", nonce, LOCK_DIR, LOCK_WAIT_S) + 'mkdir -p "$LOCK_DIR"\n'
    return _PROLOGUE + settings + "\n".join(calls) + "\nexit 0\n"


def files(plan: RolePlan, nonce: str) -> dict[str, str]:
    """The files of a role's job directory: ``run`` and one ``step-N`` a step."""
    steps = {f"step-{number}": step.script + "\n" for number, (_, step) in enumerate(plan.steps)}
    return {"run": runner(plan, nonce), **steps}


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a running role stands: the number of the step that runs (``None`` between steps), its last line."""

    number: int | None
    what: str
    last_line: str


class LogReader:
    """Reads a role's log as it grows, in pieces of any size, and turns its markers into step results."""

    def __init__(self, plan: RolePlan, nonce: str):
        self._plan = plan
        self._marker = re.compile(rf"{re.escape(nonce)} (begin|end) (\d+)(?: (\d+) (-?\d+))?")
        self._rest = b""
        self._running: int | None = None
        self._output: list[str] = []
        self._size = 0
        self._last = ""
        self.results: list[StepResult] = []

    def feed(self, data: bytes) -> Progress:
        """Take the next piece of the log; say where the role stands."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > OUTPUT_CAP_BYTES:  # a line without an end is a progress bar or an attack: keep its tail
            self._rest = self._rest[-4096:]
        for raw in lines:
            self._line(raw.decode("utf-8", errors="replace"))
        return Progress(self._running, self._what(self._running), self._last)

    def _what(self, number: int | None) -> str:
        return self._plan.steps[number][0].what if number is not None and number < len(self._plan.steps) else ""

    def _line(self, line: str) -> None:
        match = self._marker.fullmatch(line)
        if match is None:
            self._keep(line)
        elif match[1] == "begin":
            self._running, self._output, self._size = int(match[2]), [], 0
        elif self._running is not None:
            text = "\n".join(self._output).rstrip("\n")
            number = int(match[2])
            self.results.append(StepResult(number, self._what(number), int(match[3]), int(match[4]) / 1000, text))
            self._running = None

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
            steps.append(StepResult(self._running, self._what(self._running), None, 0.0, text))
        return RoleResult(self._plan.role, status, sum(step.duration_s for step in steps), tuple(steps))
