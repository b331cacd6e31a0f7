"""Faults and their moments. A new kind of fault is one function and one line of ``CASES``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lab import faults, halfway, network
from lab.machine import power_off
from tests.lab.faults import damage, many, several
from tests.lab.faults.results import CONTROL
from tests.lab.faults.trial import Trial

CUT_S = 30.0  #: as long as a switch's reboot or a VPN's reconnection
APT_LOCK_S = 60.0
FULL_S = 120.0  #: time that a disk stays full if the run does not end
YEAR_DAYS = 365
HALF_UNPACKED = "make"  #: package that `halfway.half_unpack` begins to install again


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of fault: the function of a trial, and its number per layer in a suite of 210 trials.

    ``may_repeat`` permits that a completed step runs again: the host goes down before the step's end is recorded, or a
    step fails and earlier steps of the same change run again with it. Repetitions are counted. In all other cases, a
    completed step must not run again.
    """

    kind: str
    act: Callable[[Trial], None]
    layers: Mapping[str, int] = field(default_factory=dict)
    may_repeat: bool = False
    own_disk: bool = False  #: on a host with a separate disk
    alone: bool = False  #: runs without other trials, because it compares times


def no_fault(trial: Trial) -> None:
    """A run without a fault, as the reference for the others."""
    trial.end(trial.provision())


def cut(trial: Trial) -> None:
    """All SSH connections of the host end at once."""
    run = trial.provision()
    trial.at_moment(run)
    trial.record.notes["connections"] = faults.cut_connections(trial.machine)
    trial.end(run)


def silence(trial: Trial) -> None:
    """The host's network link is down for half a minute."""
    run = trial.provision()
    trial.at_moment(run)
    with faults.silence_network(trial.machine):
        time.sleep(CUT_S)  # duration of the fault
    trial.end(run)


def kill_controller(trial: Trial) -> None:
    """The controller is killed; the same command starts immediately again and re-attaches to a running job."""
    run = trial.provision()
    trial.at_moment(run)
    run.kill()


def restart_sshd(trial: Trial) -> None:
    """The SSH service restarts, as after its upgrade."""
    run = trial.provision()
    trial.at_moment(run)
    faults.restart_sshd(trial.machine)
    trial.end(run)


def go_down(trial: Trial) -> None:
    """The host loses power, is reset by a watchdog, or reboots; it comes back after a while."""
    run = trial.provision()
    trial.at_moment(run)
    _down(trial)
    trial.end(run)


def in_step(part: str, *, process: str = "", span: float = 1.0) -> Callable[[Trial], None]:
    """The same within one step; with ``process``, while such a program runs."""

    def act(trial: Trial) -> None:
        run = trial.provision()
        trial.in_step(run, part, process=process, span=span)
        _down(trial)
        trial.end(run)

    return act


def _down(trial: Trial) -> None:
    """Cut the power (network first, then all processes), reset like a watchdog, or reboot like an administrator."""
    how = trial.rng.choice(("power", "power", "reset", "reboot"))
    trial.record.notes["how"] = how
    if how == "power":
        network.cut_network(trial.machine)
        power_off(trial.machine)
        trial.look_at_rest()
        trial.switch_on()
    elif how == "reset":
        faults.reboot_now(trial.machine)
    else:
        faults.reboot(trial.machine)


def fill_disk(trial: Trial) -> None:
    """The disk is full until the run has ended."""
    run = trial.provision()
    trial.at_moment(run)
    with faults.fill_disk(trial.machine):
        run.wait_end(FULL_S)
        trial.look_at_rest()
    trial.end(run)


def hold_apt(trial: Trial) -> None:
    """Another process uses apt for a minute."""
    with faults.hold_apt_lock(trial.machine, APT_LOCK_S):
        run = trial.provision()
        run.wait_end(APT_LOCK_S + 1)
    trial.end(run)


def half_configured(trial: Trial) -> None:
    """A dpkg was killed during its work before the run."""
    choice = trial.rng.choice((halfway.half_configure, halfway.half_unpack))
    trial.record.notes["how"] = choice.__name__
    choice(trial.machine)
    trial.begun_here = frozenset({HALF_UNPACKED, halfway.PACKAGE})
    trial.end(trial.provision())


def clock(years: int) -> Callable[[Trial], None]:
    """The host's clock is wrong during the first run; then NTP corrects it.

    Only with roles that record no file times: the lab's wrong clock also shifts times of existing files, unlike a real
    one.
    """

    def act(trial: Trial) -> None:
        trial.layer = replace(trial.layer, roles=tuple(dict.fromkeys(("base", trial.layer.name))))
        with faults.year_off(trial.machine, years * YEAR_DAYS):
            trial.end(trial.provision())

    return act


def host_key(trial: Trial) -> None:
    """The host has another host key: it is refused and unchanged; with the former key, the run continues."""
    before = trial.marks()
    faults.change_host_key(trial.machine)
    run = trial.provision()
    trial.end(run)
    trial.expect(run.status == 1, f"a host with another key: exit status {run.status} instead of 1")
    trial.expect("host key" in run.output.lower(), "the other host key is not named")
    faults.restore_host_key(trial.machine)
    trial.expect(trial.marks() == before, "the host was touched although its key was another")


EACH = ("base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container")


def _each(number: int, **other: int) -> dict[str, int]:
    return {layer: other.get(layer, number) for layer in EACH}


CASES = (
    Case(CONTROL, no_fault),
    Case("SSH connection cut", cut, _each(5, tensorflow=3)),
    Case("network of the host cut for 30 s", silence, _each(3, tensorflow=2)),
    Case("controller killed, then run again", kill_controller, _each(5, tensorflow=3)),
    Case("sshd restarted", restart_sshd, _each(2)),
    Case("host down at any moment", go_down, _each(1), may_repeat=True),
    Case("host down in dpkg (base)", in_step("packages build-essential", process="dpkg"), {"base": 4}, may_repeat=True),
    Case("host down in dpkg (cuda)", in_step("packages cuda", process="dpkg"), {"cuda": 4}, may_repeat=True),
    Case(
        "host down in dpkg (cuda's repository)",
        in_step("repository cuda", process="dpkg"),
        {"cuda": 4},
        may_repeat=True,
    ),
    Case("host down in dpkg (container)", in_step("packages", process="dpkg"), {"container": 4}, may_repeat=True),
    Case("host down in the driver's .run", in_step("driver[2]"), {"driver": 5}, may_repeat=True),
    Case("host down in pip", in_step("tensorflow[1]"), {"tensorflow": 3}, may_repeat=True),
    Case("host down while the tarball is unpacked", in_step("files of cudnn"), {"cudnn": 5}, may_repeat=True),
    Case("host down while daemon.json is written", in_step("daemon.json"), {"container": 5}, may_repeat=True),
    Case("disk full, then freed", fill_disk, _each(2), may_repeat=True, own_disk=True),
    Case("apt's lock held for a minute", hold_apt, {"base": 2, "cuda": 2, "container": 2}),
    Case(
        "artifact damaged on the SSH connection",
        damage.on_the_line,
        {"driver": 1, "cuda": 4, "cudnn": 1, "tensorflow": 1},
    ),
    Case("artifact damaged by the vendor's mirror", damage.from_the_vendor, {"driver": 1, "cuda": 2, "cudnn": 2}),
    Case("artifact damaged in the host's cache", damage.at_rest, {"driver": 2, "cuda": 2, "cudnn": 2}, may_repeat=True),
    Case("dpkg interrupted before the run", half_configured, {"base": 2, "cuda": 2, "container": 1}),
    Case("clock of the host a year ahead", clock(1), {"base": 2, "cuda": 2, "tensorflow": 1}),
    Case("clock of the host a year behind", clock(-1), {"base": 2, "cuda": 2}),
    Case(
        "two provisions of one host at once", several.two_at_once, {"base": 2, "driver": 2, "cuda": 2, "container": 2}
    ),
    Case("host key changed", host_key, {"base": 1, "driver": 1, "cudnn": 1, "environment": 1}),
    Case("journal cut off at a random byte", several.torn_journal, {"driver": 3, "cudnn": 2, "environment": 3}),
    Case("one of twenty hosts hangs", many.one_hangs, {"environment": 3}, alone=True),
)
