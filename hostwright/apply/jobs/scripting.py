r"""Changes → one numbered sh program; its markers → results.

A role's program is a directory of step files and a runner. The runner writes, for each step, a line with a nonce when
it begins and one with exit status and duration when it ends; everything between is the step's own output. A step with
a transient failure is run again, as often as it may be, with a line of its own before each wait. The runner stops at
the first step that fails for good, and exits with that step's status; where the step's change stands alone, it goes on
with the next change, and exits with that status at the end.

The program runs in ``$JOB`` and writes to ``$JOB/log``. What a step prints goes through a named pipe, so that the log
stays bounded. The pipe is always read to its end: a step neither waits nor dies because the log or the disk is full.
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
#: files that apt and dpkg lock (fcntl) while they work
APT_LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
LOCK_WAIT_S = 3600  #: our estimate: another role of this host may hold dpkg while it installs a whole toolkit
TOLD_WAIT_S = 0.05  #: what a step waits for its lock counts from here on: to take a free one needs some processes, too
MOST_URGENT = 99_999_999  #: tenths of a second: what no role has left
OUTPUT_CAP_BYTES = 256 * 1024  #: of one step's output, kept by the controller: bounds its memory
_HALF = OUTPUT_CAP_BYTES // 2  #: for the first lines
FIRST_LINES = 200  #: of a longer output that are kept with its end: the first error often stands there
STEP_CAP_BYTES = 4 << 20  #: of one step's output in the log: ten times what installing 60 packages prints
JOB_CAP_BYTES = 8 << 20  #: of the log from which on each step keeps the beginning and the end of its output only
END_BYTES = transient.TAIL_BYTES  #: of a longer output its end is kept: it says what a failure was for
MOST_STEPS = 1000  #: of a role whose steps are not known
MOST_TRIES = 100  #: of a step; ten times what any role asks for
LINE_CHARACTERS = 1000  #: of the line that shows where a step stands
RESERVE_BYTES = 64 * 1024  #: of the disk, kept for the log before each step: a full disk shall be able to say so


def runner(plan: RolePlan, nonce: str, remaining_s: Sequence[float] = ()) -> str:
    """The sh program that runs a role's steps in order, given ``$JOB``, the directory that holds their files.

    ``nonce`` marks its own lines in the log, and must be text that no step can guess. ``remaining_s`` says of each step
    how much is left when it begins: of several that wait for a lock, the one with the most gets it. The program exits
    with 0, with the status of a step that failed for good, or with 143 where the host shuts down.
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
    """The calls of ``step``, those of a change that stands alone on one line."""
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
    """Commands that define the shell functions ``work``, which makes a directory in which programs may be run, and
    ``unwork``, which removes it.

    ``places`` are shell words of the directories in which it may be made, by default those of jobs, which are root's.
    """
    enough_kib = hostjobs.WORK_BYTES // 1024
    return sh_file(__file__, "work.sh", work_dirs=places or hostjobs.WORK_DIRS, enough_kib=enough_kib)


def files(
    plan: RolePlan, nonce: str, retry_rules: Sequence[RetryRule] = (), remaining_s: Sequence[float] = ()
) -> dict[str, str]:
    """The files of a role's job directory: ``run``, ``drain`` for what a step prints, ``retries`` (what is tried again,
    see ``transient``), and one ``step-N`` a step. ``remaining_s`` is as in ``runner``.
    """
    steps = {f"step-{number}": step.script + "\n" for number, (_, step) in enumerate(plan.steps)}
    retries = transient.table(retry_rules) + "\n"
    run = runner(plan, nonce, remaining_s)
    return {"run": run, "drain": sh_file(__file__, "drain.sh"), "retries": retries, **steps}


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Retry:
    """A transient failure of a step: it is run again for the ``number``-th time, after ``wait_s`` seconds."""

    number: int
    wait_s: float
    reason: str  #: the line of its output that names the cause


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a running role stands: the number of the step that runs (``None`` between steps), its last line.

    ``retry`` is the last repetition of the step that runs, from its announcement to the step's end. ``waits`` is a
    lock of apt's that the step waits for, and its holder.
    """

    number: int | None
    what: str
    last_line: str
    retry: Retry | None = None
    waits: str = field(default="", repr=False)


class LogReader:
    """Reads a role's log as it grows, in pieces of any size, and turns its markers into step results.

    ``steps`` says what each step is for, in order. ``reason`` finds the line that names a transient cause in a text.
    ``bytes`` is how much of the log it was given: a watch whose connection broke continues with the byte after that.

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
        self._next = 0  #: the first step that may still begin: one that began does not begin again
        self._output = _Output()
        self._last = ""
        self._retry: Retry | None = None
        self._waited_s = 0.0
        self._waits = ""
        self.bytes = 0
        self.results: list[StepResult] = []

    def feed(self, data: bytes) -> Progress:
        """Take the next piece of the log; say where the role stands. Only what is new is looked at."""
        self.bytes += len(data)
        lines, newline, rest = data.rpartition(b"\n")
        if newline:
            whole, self._rest = bytes(self._rest + lines), bytearray(rest)
            self._read(whole)
        else:
            self._rest += rest
        if len(self._rest) > OUTPUT_CAP_BYTES:  # a line without an end is a progress bar or an attack: keep its tail
            del self._rest[:-4096]
        return Progress(self._running, self._what(self._running), self._last, self._retry, self._waits)

    def _what(self, number: int | None) -> str:
        return self._steps[number] if number is not None and number < len(self._steps) else ""

    def _read(self, lines: bytes) -> None:
        """Whole lines, without the last line break: what stands between markers is a step's output."""
        start = 0
        for match in self._marker.finditer(lines):
            if match.start() > start:
                self._keep(lines[start : match.start() - 1])
            self._mark(match)
            start = match.end() + 1
        if start <= len(lines):
            self._keep(lines[start:])

    def _mark(self, match: re.Match[bytes]) -> None:
        """A marker; one that the program cannot have written at this place is output."""
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
        """The step is tried again. Why is looked for only as often as a step may be tried."""
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
        """The role's result, given its exit status. The status of a step that began and never ended is ``None``."""
        steps = list(self.results)
        if self._running is not None:
            text = f"{self._output.text()}\n{self._rest.decode('utf-8', errors='replace')}".strip("\n")
            what = self._what(self._running)
            steps.append(StepResult(self._running, what, None, 0.0, text, self._tries(), self._waited_s))
        return RoleResult(self._role, status, sum(step.duration_s for step in steps), tuple(steps))


class _Output:
    """What a step printed: its first lines and its end. What stands between is dropped once it is too much."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._end: deque[str] = deque()
        self._room = OUTPUT_CAP_BYTES

    def add(self, lines: list[str]) -> None:
        """Lines in their order. Each is put in once and taken out once at most."""
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
        """All that is kept."""
        return "\n".join([*self._first, *self._end])
