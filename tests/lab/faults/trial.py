"""One trial: a host in a known state, a disturbed run, and the actions of a case."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from hostwright.common.errors import HostwrightError, LabError
from lab.cgroups import processes
from lab.config import Machine
from lab.machine import exec_in, start, wait_for_ssh
from tests.lab.faults import checks
from tests.lab.faults.bench import Bench, failed_checks, plan_of
from tests.lab.faults.controller import Controller
from tests.lab.faults.hostjobs import Follower, HostJob, read_jobs
from tests.lab.faults.layers import Layer, Reference
from tests.lab.faults.results import Record, RunRecord

RUN_TIMEOUT_S = 600.0  #: twice the 300 s of reconnection attempts
STEP_TIMEOUT_S = 300.0
FURTHER_RUNS = 3
REATTACH_S = 15.0  #: two seconds on idle cores; here other tests share the cores
_POLL_S = 0.003


class Missed(Exception):
    """The run ended before its moment."""


class Trial:
    """Interface of a case to its trial. ``scale`` makes the moment earlier after a miss."""

    def __init__(self, bench: Bench, machine: Machine, layer: Layer, record: Record, *, scale: float = 1.0):
        self.bench = bench
        self.machine = machine
        self.layer = layer
        self.record = record
        self.rng = random.Random(f"{record.seed}/{record.missed}")  # noqa: S311 - moments, not keys
        self.scale = scale
        self.folder = bench.work / f"{record.number:04d}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.inventory = bench.inventory(self.folder / "inventory", [machine.name])
        self.hosts = machine.name
        self.artifacts_may_differ = False  #: the case damages artifacts at rest, so their damage is not an error
        self.breaks_itself = False  #: the case damages completed states, so their repair is not a repetition
        self.begun_here: frozenset[str] = frozenset()  #: packages that the case itself began to install
        self._follower = Follower(machine.merged)
        self._runs: list[Controller] = []

    @property
    def root(self) -> Path:
        """Root of the host's filesystem on this machine."""
        return self.machine.merged

    @property
    def reference(self) -> Reference:
        """The layer's run without a fault."""
        return self.bench.reference(self.layer.name)

    # actions of a case

    def provision(self, *more: str, inventory: Path | None = None, state: str = "state") -> Controller:
        """Start the run; ``state`` names the folder of its journal."""
        words = ["provision", "--inventory", str(inventory or self.inventory), "--hosts", self.hosts]
        return self.invoke([*words, "--roles", ",".join(self.layer.roles), *more], state=state)

    def invoke(
        self, words: list[str], *, state: str = "state", environment: Mapping[str, str] | None = None
    ) -> Controller:
        """Start any command, with its journal in the trial's folder."""
        given = {"HOSTWRIGHT_STATE": str(self.folder / state), **(environment or {})}
        self._runs.append(Controller(words, given))
        return self._runs[-1]

    def at_moment(self, run: Controller) -> None:
        """Wait for the moment, a random share of the layer's time. Raises `Missed` if the run ends before."""
        share = self.rng.uniform(0.0, 1.0)
        if not run.wait(lambda: run.first_host_line() is not None, RUN_TIMEOUT_S):
            raise Missed
        pause_s = share * self.reference.seconds * self.scale
        if run.wait_end(pause_s):
            raise Missed
        self.record.share = round(share * self.scale, 3)
        self._note_moment(run)

    def in_step(self, run: Controller, part: str, *, process: str = "", span: float = 1.0) -> None:
        """Wait for a random moment within the step whose description contains ``part``.

        With ``process``, the time starts when such a program runs on the host. ``span`` is the share of the step's time
        with the moment. Raises `Missed` if the step ends before.
        """
        span_s = self.reference.step_seconds(part) * span * self.scale

        def there() -> bool:
            return not process or self._runs_on_host(process)

        self._poll(run, lambda: part in self._now())
        self._poll(run, lambda: there() or part not in self._now())
        share = self.rng.uniform(0.0, 1.0)
        time.sleep(share * span_s)  # the trial's moment, drawn from its seed
        self._poll(run, lambda: there() or part not in self._now())
        if part not in self._now():
            raise Missed
        self.record.share = round(share * self.scale, 3)
        self._note_moment(run)

    def end(self, run: Controller, timeout_s: float = RUN_TIMEOUT_S) -> None:
        """Wait for the end of the run; a run that does not end is killed and recorded as broken."""
        if not run.wait_end(timeout_s):
            self.record.broken.append(f"a run did not end within {timeout_s:.0f} s")
            run.kill()

    def switch_on(self) -> None:
        """Start the host again after a while, as its BMC would."""
        time.sleep(self.rng.uniform(0.3, 4.0))  # time without power, drawn from the seed
        for _ in range(2):
            with suppress(LabError):
                start(self.machine)
                wait_for_ssh(self.machine)
                return

    def expect(self, holds: bool, sentence: str) -> None:
        """Record ``sentence`` as an error unless the condition holds."""
        if not holds:
            self.record.broken.append(sentence)

    def marks(self) -> str:
        """Return what any work on the host would change: its jobs, its packages, the files of its roles."""
        log = self.root / "var/log/dpkg.log"
        size = log.stat().st_size if log.exists() else 0
        return repr(([job.id for job in self._jobs()], size, sorted(checks.written_files(self.root).items())))

    @property
    def last_run(self) -> Controller:
        """The run that was started last."""
        return self._runs[-1]

    def new_jobs(self) -> list[HostJob]:
        """Return the jobs of this trial's runs, without the snapshot's jobs."""
        return [job for job in self._jobs() if job.role == self.layer.name]

    def job(self) -> HostJob | None:
        """Return the running job on the host, if its processes exist."""
        jobs = [job for job in self._jobs() if job.status is None]
        return jobs[-1] if jobs and self._runs_on_host("", word="/wrapper") else None

    # checks

    def look_at_rest(self) -> None:
        """Check the host after the fault: no half-written file at its final path."""
        found = checks.half_written(self.root, self.reference, self.bench.sums, artifacts=not self.artifacts_may_differ)
        self.record.half += [one for one in found if one not in self.record.half]

    def again(self) -> None:
        """Run the same command until it succeeds, at most three times."""
        last = self._runs[-1]
        for number in range(FURTHER_RUNS + 1):
            if last.status == 0:
                self.record.further = number
                return
            if number < FURTHER_RUNS:
                last = self._once_more(follow=last.killed)

    def _once_more(self, *, follow: bool) -> Controller:
        job = self.job() if follow else None
        run = self.provision()
        self.end(run)
        if job is not None:
            self._see_whether_followed(job, run)
        return run

    def _see_whether_followed(self, job: HostJob, run: Controller) -> None:
        """Check that the controller re-attached to a job that ran at its start, unless the job ended before."""
        line, first = run.find(r"re-attaching to"), run.first_host_line()
        if line is not None:
            self.record.notes["reattach_s"] = round(line.at_s, 1)
            self.expect(line.at_s <= REATTACH_S, f"re-attached only after {line.at_s:.1f} s")
            return
        ended_s = next((one.ended_s for one in self._jobs() if one.id == job.id), None)
        looked_s = run.began_unix_s + (first.at_s if first else run.seconds)
        self.record.notes["job"] = "ended before it was looked for"
        self.expect(ended_s is not None and ended_s <= looked_s, f"the job {job.id} ran and was not followed")

    def look_at_end(self, *, repeats_allowed: bool) -> None:
        """Check the end: verified, nothing half-written, nothing installed twice, nothing lost."""
        left = self._verify()
        self.artifacts_may_differ = False
        self.look_at_rest()
        jobs = self._jobs()
        self.record.twice = checks.installed_twice(self.root, self.begun_here)
        self.record.repeated = [] if self.breaks_itself else checks.repeated_steps(jobs)
        for role, what in checks.untraced_steps(jobs, self.reference):
            if left is None or (role, what) in left:
                self.record.lost.append(f"{role}: {what}")
            else:
                self.record.untraced.append(f"{role}: {what}")
        if not repeats_allowed:
            self.record.broken += [f"repeated although the host never went down: {one}" for one in self.record.repeated]

    def _verify(self) -> set[tuple[str, str]] | None:
        """Return the plan's remaining changes as (role, what); ``None`` if the host cannot be probed."""
        try:
            # The host may reboot after a successful run, so services are checked after the boot.
            wait_for_ssh(self.machine)
            exec_in(self.machine, ["systemctl", "is-system-running", "--wait"])
            plan = plan_of(self.inventory, self.machine.name, self.layer.roles)
            left = {(role.role, change.what) for role in plan.roles for change in role.changes}
            failed = [] if left else failed_checks(self.inventory, self.machine.name, self.layer)
        except HostwrightError as error:
            self.record.broken.append(f"the host cannot be looked at: {error}")
            return None
        self.record.verified = not (left or failed)
        self.record.broken += [f"still differs: {role}: {what}" for role, what in sorted(left)]
        self.record.broken += [f"a check fails: {one}" for one in failed]
        return left

    def close(self) -> None:
        """End the trial's processes on this machine, and record the output of its runs."""
        for run in self._runs:
            if run.running:
                run.kill()
            self.record.runs.append(RunRecord(run.words, run.status, round(run.seconds, 1), run.output))

    # reads of the host's files

    def _note_moment(self, run: Controller) -> None:
        first = run.first_host_line()
        self.record.moment_s = round(run.age_s - first.at_s, 2) if first else None
        self.record.during = self._now() or ("between jobs" if run.running else "the run was over")

    def _jobs(self) -> list[HostJob]:
        return read_jobs(self.root)

    def _now(self) -> str:
        """Return the step that runs on the host now."""
        return self._follower.now()

    def _runs_on_host(self, program: str, *, word: str = "") -> bool:
        for pid in processes(self.machine.cgroup):
            with suppress(OSError):
                folder = Path(f"/proc/{pid}")
                named = not program or (folder / "comm").read_text().strip() == program
                if named and (not word or word in (folder / "cmdline").read_text()):
                    return True
        return False

    def _poll(self, run: Controller, until: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + STEP_TIMEOUT_S
        while not until():
            if not run.running or time.monotonic() > deadline_s:
                raise Missed
            time.sleep(_POLL_S)  # polling, because no notification of a new process exists
