"""One of twenty hosts hangs: it is named soon, fails at its own timeout, and hardly delays the others."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab import faults, fleet
from lab.config import Machine
from lab.records import find_machine, read_snapshots
from tests.lab.faults.bench import SMALL, plan_of
from tests.lab.faults.controller import HOST_LINE, Controller
from tests.lab.faults.trial import Trial

HOSTS = 20
NAMED_S = 10.0
CONNECT_TIMEOUT_S = 15.0
_BROKEN = "/etc/profile.d/cuda.sh"  #: a file that one step restores
_DONE = re.compile(rf"{HOST_LINE.pattern}(\S+)  as desired")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds since the start of the process: the last other host done, the hung host named, and failed."""

    others_s: float
    named_s: float | None
    failed_s: float | None


def one_hangs(trial: Trial) -> None:
    """Twenty hosts with one small damage each are provisioned, without and with a hung host, until all are repaired."""
    names = [f"many{number:02d}" for number in range(1, HOSTS + 1)]
    fleet.up(trial.bench.lab, names, options=SMALL, snapshot=read_snapshots(trial.bench.lab)["environment"])
    machines = [find_machine(trial.bench.lab, name) for name in names]
    hung = trial.rng.choice(machines)
    others = [machine for machine in machines if machine != hung]
    trial.inventory = trial.bench.inventory(
        trial.folder / "twenty", names, hostwright_connect_timeout=int(CONNECT_TIMEOUT_S)
    )
    trial.hosts = ",".join(names)
    trial.machine, trial.breaks_itself = hung, True
    before = _calm(trial, machines, others, hung)
    for machine in machines:
        _break(machine)
    with faults.freeze_sshd(hung):
        run = trial.provision()
        times = _times(run, trial, others, hung)
    trial.record.during = f"{hung.name} hangs"
    trial.again()
    after = _calm(trial, machines, others, hung)
    _judge(trial, run, (before + after) / 2, times)
    left = [machine.name for machine in machines if not plan_of(trial.inventory, machine.name, trial.layer.roles).empty]
    trial.expect(not left, f"not as desired at the end: {', '.join(left)}")


def _calm(trial: Trial, machines: list[Machine], others: list[Machine], hung: Machine) -> float:
    """Return the seconds until the others are done without a hung host."""
    for machine in machines:
        _break(machine)
    run = trial.provision()
    times = _times(run, trial, others, hung)
    trial.expect(run.status == 0, f"without a fault: exit status {run.status}")
    return times.others_s


def _judge(trial: Trial, run: Controller, calm_s: float, times: Times) -> None:
    notes = trial.record.notes
    notes["delay_percent"] = round(100 * (times.others_s - calm_s) / calm_s, 1)
    trial.expect(run.status == 1, f"exit status {run.status} instead of 1")
    trial.expect(times.named_s is not None, "the hung host was never named")
    trial.expect(times.failed_s is not None, "the hung host never failed")
    if times.named_s is not None:
        notes["named_s"] = times.named_s
        trial.expect(times.named_s <= NAMED_S, f"the hung host was named only after {times.named_s:.1f} s")
    if times.failed_s is not None:
        notes["failed_s"] = times.failed_s


def _break(machine: Machine) -> None:
    (machine.merged / _BROKEN.lstrip("/")).unlink(missing_ok=True)


def _times(run: Controller, trial: Trial, others: list[Machine], hung: Machine) -> Times:
    trial.end(run)
    names = {machine.name for machine in others}
    done = {match[1]: line.at_s for line in run.lines if (match := _DONE.match(line.text)) and match[1] in names}
    trial.expect(set(done) == names, f"not done: {', '.join(sorted(names - set(done)))}")
    named = run.find(rf"{HOST_LINE.pattern}{hung.name}  no sign of life")
    failed = run.find(rf"{HOST_LINE.pattern}{hung.name}  (unreachable|failed)")
    return Times(
        max(done.values(), default=0.0),
        round(named.at_s, 1) if named else None,
        round(failed.at_s, 1) if failed else None,
    )
