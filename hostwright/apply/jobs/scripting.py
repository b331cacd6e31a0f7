"""The program of a role as sh, and the parser that converts the program's log to results.

A role's program is a directory of step files and a runner. The runner writes a marker line with a nonce before each
step, and after each step a marker line with exit status and duration. The lines between are the step's output. A step
with a transient failure runs again, up to its number of tries, each time after a marker line.

The runner stops at the first step that fails permanently, and exits with the status of that step. After a failure in a
change marked ``alone``, the runner continues with the next change, and exits with the status of the failure at the end.

The program runs in ``$JOB`` and writes to ``$JOB/log``. A step's output passes through a named pipe, so that the log
stays bounded, and a full disk neither blocks nor kills a step.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from hostwright.apply.jobs import transient
from hostwright.common.quoting import sh, sh_file
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.model import RetryRule, RolePlan, RoleResult, StepResult

LOCK_DIR = "/run/hostwright"
#: files that apt and dpkg lock with fcntl while they are running
APT_LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
#: maximum seconds that a step waits for a lock (our estimate). Another role may install a whole toolkit under dpkg's
#: lock.
LOCK_WAIT_S = 3600
#: seconds below which a wait for a lock is not recorded. Acquiring a free lock takes almost as long.
TOLD_WAIT_S = 0.05
MOST_URGENT = 99_999_999  #: remaining work in tenths of a second that exceeds the work of any role
OUTPUT_CAP_BYTES = 256 * 1024  #: maximum number of bytes of one step's output that the controller keeps in memory
_HALF = OUTPUT_CAP_BYTES // 2  #: maximum number of bytes to keep from the beginning of a step's output
FIRST_LINES = 200  #: number of lines to keep from the beginning of a step's long output, often with the first error
#: maximum number of bytes of a step's output in the log. Installing 60 packages prints a tenth of this.
STEP_CAP_BYTES = 4 << 20
JOB_CAP_BYTES = 8 << 20  #: size in bytes of a job's log above which a step's output is shortened in the middle
#: number of bytes to keep from the end of a step's long output; the end contains the error
END_BYTES = transient.TAIL_BYTES
MOST_STEPS = 1000  #: maximum number of steps of a job if the steps of the role are unknown
MOST_TRIES = 100  #: maximum number of tries of one step, ten times as many as any role requests
LINE_CHARACTERS = 1000  #: maximum number of characters of the progress line of a step
RESERVE_BYTES = 64 * 1024  #: number of bytes reserved on disk before each step, so that "disk full" can be logged


def runner(plan: RolePlan, nonce: str, remaining_s: Sequence[float] = ()) -> str:
    """Return the sh program that runs the steps of ``plan`` in order, from the directory ``$JOB`` of step files.

    ``nonce`` marks the program's own lines in the log; no step must be able to guess it. ``remaining_s`` has the
    seconds of work left at the start of each step. Of several steps that wait for a lock, the step with the most work
    left gets the lock.

    The program exits with 0, with the status of a step that failed permanently, or with 143 when the host shuts down.
    """
    locks = {"lock_dir": LOCK_DIR, "lock_wait_s": LOCK_WAIT_S}
    turns = sh_file(__file__, "turns.sh", **locks)
    functions = sh_file(
        __file__,
        "runner.sh",
        **locks,
        nonce=nonce,
        told_ms=_ms(TOLD_WAIT_S),
        apt_locks=APT_LOCKS,
        error=hostjobs.ERROR,
        step_cap=STEP_CAP_BYTES,
        job_cap=JOB_CAP_BYTES,
        end_bytes=END_BYTES,
        reserve=RESERVE_BYTES,
        backoff_ms=_ms(transient.BACKOFF_S),
        backoff_max_ms=_ms(transient.BACKOFF_MAX_S),
    )
    calls = "\n".join(_calls(plan, remaining_s))
    return work_script() + turns + functions + "late=0\n" + calls + '\nexit "$late"\n'


def _calls(plan: RolePlan, remaining_s: Sequence[float]) -> Iterator[str]:
    ranks = [min(MOST_URGENT, max(0, round(10 * seconds))) for seconds in remaining_s] or [0] * len(plan.steps)
    for _, steps in groupby(enumerate(plan.steps), key=lambda item: id(item[1][0])):
        numbered = list(steps)
        calls = [
            sh("step %s %s %s %s %s", number, step.lock, f"{step.timeout_s:g}", max(1, step.tries), ranks[number])
            for number, (_, step) in numbered
        ]
        if numbered[0][1][0].alone:
            yield f"{{ {' && '.join(calls)}; }} || late=$?"
        else:
            yield from (f"{call} || exit $?" for call in calls)


def work_script(places: str = "") -> str:
    """Return commands that define two shell functions: ``work`` makes a directory for programs, ``unwork`` removes it.

    ``work`` picks a parent directory that allows execution of programs. ``places`` are the candidates as shell words;
    the default is the directories of jobs, which belong to root.
    """
    enough_kib = hostjobs.WORK_BYTES // 1024
    return sh_file(__file__, "work.sh", work_dirs=places or hostjobs.WORK_DIRS, enough_kib=enough_kib)


def files(
    plan: RolePlan, nonce: str, retry_rules: Sequence[RetryRule] = (), remaining_s: Sequence[float] = ()
) -> dict[str, str]:
    """Return the files in the job directory of a role, by file name.

    The files are ``run``, ``drain`` (limits a step's output), ``retries`` (the transient failures, see ``transient``)
    and one ``step-N`` for each step. ``remaining_s`` is as in ``runner``.
    """
    steps = {f"step-{number}": step.script + "\n" for number, (_, step) in enumerate(plan.steps)}
    retries = transient.table(retry_rules) + "\n"
    run = runner(plan, nonce, remaining_s)
    return {"run": run, "drain": sh_file(__file__, "drain.sh"), "retries": retries, **steps}


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Retry:
    """A transient failure of a step. The ``number``-th retry of the step starts after ``wait_s`` seconds."""

    number: int
    wait_s: float
    reason: str  #: line of the step's output that names the cause of the failure


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a running role: the number of the running step (``None`` between steps) and its last output line.

    ``retry`` is the latest retry of the running step. ``waits`` names the apt lock for which the step waits, and the
    holder of the lock.
    """

    number: int | None
    what: str
    last_line: str
    retry: Retry | None = None
    waits: str = field(default="", repr=False)


class LogReader:
    """Parses the log of a role's job, fed in chunks of any size, into results of the steps.

    ``steps`` are the descriptions of the steps, in order. ``reason`` finds the line with a transient cause in a text.
    ``bytes`` counts the bytes fed so far, so that reading can continue there after a lost connection.

    >>> reader = LogReader("base", ["install packages"], "n0nce")
    >>> reader.feed(b"n0nce begin 0\\nUnpacking libc6 ...\\n")
    Progress(number=0, what='install packages', last_line='Unpacking libc6 ...', retry=None)
    >>> reader.feed(b"\\nn0nce end 0 0 1500\\n").number is None
    True
    >>> [(step.what, step.status, step.duration_s) for step in reader.result(0).steps]
    [('install packages', 0, 1.5)]
    """

    def __init__(self, role: str, steps: Sequence[str], nonce: str, reason: Callable[[str], str] = lambda _: ""):
        self._role = role
        self._reason = reason
        self._steps = tuple(steps)
        self._marker = re.compile(
            rb"^" + re.escape(nonce.encode()) + rb" (?:(begin) ([0-9]{1,6})|(end) ([0-9]{1,6}) ([0-9]{1,3}) "
            rb"(-?[0-9]{1,12})|(waited) ([0-9]{1,6}) ([0-9]{1,12})"
            rb"|(waits) ([0-9]{1,6}) ([A-Za-z0-9 ',()._+-]{1,200})"
            rb"|(retry) ([0-9]{1,6}) ([0-9]{1,6}) ([0-9]{1,6}\.[0-9]{3}))$",
            re.MULTILINE,
        )
        self._rest = bytearray()
        self._running: int | None = None
        self._next = 0  #: number of the next step that may begin. No step begins twice.
        self._output = _Output()
        self._last = ""
        self._retry: Retry | None = None
        self._waited_s = 0.0
        self._waits = ""
        self.bytes = 0
        self.results: list[StepResult] = []

    def feed(self, data: bytes) -> Progress:
        """Parse ``data``, the next chunk of the log, and return the progress of the role so far."""
        self.bytes += len(data)
        lines, newline, rest = data.rpartition(b"\n")
        if newline:
            whole, self._rest = bytes(self._rest + lines), bytearray(rest)
            self._read(whole)
        else:
            self._rest += rest
        if len(self._rest) > OUTPUT_CAP_BYTES:  # A progress bar is one endless line; only its end is kept.
            del self._rest[:-4096]
        return Progress(self._running, self._what(self._running), self._last, self._retry, self._waits)

    def _what(self, number: int | None) -> str:
        return self._steps[number] if number is not None and number < len(self._steps) else ""

    def _read(self, lines: bytes) -> None:
        start = 0
        for match in self._marker.finditer(lines):
            if match.start() > start:
                self._keep(lines[start : match.start() - 1])
            self._mark(match)
            start = match.end() + 1
        if start <= len(lines):
            self._keep(lines[start:])

    def _mark(self, match: re.Match[bytes]) -> None:
        match [word.decode() for word in match.groups() if word is not None]:
            case ["begin", number] if self._next <= int(number) < (len(self._steps) or MOST_STEPS):
                self._running, self._output, self._retry, self._waited_s = int(number), _Output(), None, 0.0
                self._waits = ""
                self._next = int(number) + 1
            case ["retry", number, step, wait_s] if int(step) == self._running and self._tries() <= int(number):
                self._announce(int(number), float(wait_s))
            case ["waited", number, waited_ms] if int(number) == self._running:
                self._waited_s += int(waited_ms) / 1000
            case ["waits", number, sentence] if int(number) == self._running:
                self._waits = sentence
            case ["end", number, status, duration_ms] if int(number) == self._running:
                self._end(int(number), int(status), int(duration_ms) / 1000)
            case _:
                self._keep(match[0])

    def _announce(self, number: int, wait_s: float) -> None:
        reason = self._reason(self._output.text()[-transient.TAIL_BYTES :]) if number <= MOST_TRIES else ""
        self._retry = Retry(number, wait_s, reason)
        self._keep(f"hostwright: transient failure, retrying in {wait_s:.0f} s".encode())

    def _end(self, number: int, status: int, duration_s: float) -> None:
        text = self._output.text().rstrip("\n")
        waited_s = round(min(self._waited_s, max(0.0, duration_s)), 3)
        self.results.append(StepResult(number, self._what(number), status, duration_s, text, self._tries(), waited_s))
        self._running = self._retry = None

    def _tries(self) -> int:
        return 1 + (self._retry.number if self._retry else 0)

    def _keep(self, lines: bytes) -> None:
        end = lines[-LINE_CHARACTERS:].decode("utf-8", errors="replace").rstrip()
        self._last = re.split(r"[\r\n]", end)[-1].strip() or self._last
        self._output.add(lines.decode("utf-8", errors="replace").split("\n"))

    def result(self, status: int) -> RoleResult:
        """Return the role's result with this exit status. A step that began and did not end has the status ``None``."""
        steps = list(self.results)
        if self._running is not None:
            text = f"{self._output.text()}\n{self._rest.decode('utf-8', errors='replace')}".strip("\n")
            what = self._what(self._running)
            steps.append(StepResult(self._running, what, None, 0.0, text, self._tries(), self._waited_s))
        return RoleResult(self._role, status, sum(step.duration_s for step in steps), tuple(steps))


class _Output:
    def __init__(self) -> None:
        self._first: list[str] = []
        self._end: deque[str] = deque()
        self._room = OUTPUT_CAP_BYTES

    def add(self, lines: list[str]) -> None:
        """Append lines of output. Each line is removed at most once, so the cost is linear."""
        for line in lines:
            kept = line[-OUTPUT_CAP_BYTES:]
            self._room -= len(kept) + 1
            if not self._end and len(self._first) < FIRST_LINES and self._room >= _HALF:
                self._first.append(kept)
            else:
                self._end.append(kept)
        while self._room < 0 and len(self._end) > 1:
            self._room += len(self._end.popleft()) + 1

    def text(self) -> str:
        return "\n".join([*self._first, *self._end])
