"""Fixtures of the lab tests: the shared hosts, and ``invoke`` as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hostwright.fleet import Fleet, TargetHost
from hostwright.transport.root.become import PATH
from lab import fleet as lab_fleet
from lab import snapshots
from lab.config import HostOptions, Lab, Machine
from lab.image import ensure_programs
from lab.machine import console, start, wait_for_ssh
from lab.records import Snapshot, find_machine, read_record, read_snapshots
from tests import reruns
from tests.lab import recording
from tests.lab.ownlab import own_lab
from tests.lab.telling import Telling
from tests.places import PROJECT
from tests.programs import LAB

HERE = Path(__file__).parent
SHARED = "shared_hosts"
HOSTS = ("gpu01", "gpu02")
DESIRED = "desired"  #: name of the snapshot of a provisioned host
#: environment of verbs that prompt before they destroy something, because no user can confirm
UNATTENDED = {
    verb: {"HOSTWRIGHT_YES": "1"}
    for verb in ("remove", "rebuild", "power", "workspace.down", "serve.down", "images.rebuild")
}
SMALL = HostOptions(profile="small")  #: stand-ins for the large math libraries save minutes


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and plugins. Requires root, because the lab creates network namespaces and boots hosts."""
    if os.geteuid() != 0:
        raise pytest.UsageError("the lab tests need root: say `make test`, which uses sudo")
    config.addinivalue_line("markers", f"{SHARED}: works on the hosts of the lab `tests`, which many tests share")
    config.pluginmanager.register(Telling())
    config.pluginmanager.register(recording)
    if not config.pluginmanager.is_registered(reruns):
        config.pluginmanager.register(reruns)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use the shared hosts; the Makefile runs tests with their own hosts beside them.

    Every lab test may be rerun once, because all of them boot hosts.
    """
    reruns.may_fail_once(item)
    used = item._fixtureinfo.name2fixturedefs.get("lab", ())[-1:]  # the last definition overrides the others
    if any(one.baseid == HERE.relative_to(PROJECT).as_posix() for one in used):
        item.add_marker(SHARED)


@dataclass(frozen=True)
class FrontDoor:
    """``invoke`` in a separate process on one lab's inventory; its runs are recorded in the lab's state."""

    lab: Lab

    def __call__(
        self, *words: str, inventory: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one verb with the lab's inventory; return its exit status, standard output and standard error."""
        verb, *rest = words
        place = inventory or str(self.lab.inventory.parent)
        done = self.bare(verb, "--inventory", place, *rest, **environment)
        recording.note(self.lab, words, place, done.returncode)
        return done

    def bare(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one verb that needs no inventory; return the same."""
        return subprocess.run(
            [str(Path(sys.executable).with_name("invoke")), *words],
            cwd=PROJECT,
            env={
                **os.environ,
                "HOSTWRIGHT_STATE": str(self.lab.state / "controller"),
                **UNATTENDED.get(words[0], {}),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )

    def json(self, *words: str, status: int) -> Any:
        """Run one verb with ``--json`` and return its document. The exit status must be ``status``."""
        done = self(*words, "--json")
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return json.loads(done.stdout)


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    """Install the programs of the tests on this machine: an sshd on 127.0.0.1, sudo and login shells."""
    ensure_programs(LAB, path=PATH)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab with two bare hosts and the small vendor profile, used by these tests only."""
    with own_lab("tests") as opened:
        lab_fleet.supply(opened, SMALL)
        lab_fleet.up(opened, HOSTS, options=SMALL)
        yield opened


@pytest.fixture(scope="session")
def invoke(lab: Lab) -> FrontDoor:
    """``invoke`` on the lab's inventory, with the stack's files mirrored."""
    door = FrontDoor(lab)
    done = door("mirror", "--stack", "lab")
    assert done.returncode == 0, done.stderr
    return door


@pytest.fixture(scope="session")
def as_provisioned(invoke: FrontDoor, lab: Lab) -> Snapshot:
    """Snapshot of the provisioned second host, from which other hosts start in seconds."""
    if DESIRED in read_snapshots(lab):  # left by a run with HOSTWRIGHT_KEEP_LAB
        return read_snapshots(lab)[DESIRED]
    done = invoke("provision", "--hosts", "gpu02")
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    source = find_machine(lab, "gpu02")
    snapshot = snapshots.freeze(source, DESIRED)
    start(source)
    wait_for_ssh(source)
    return snapshot


@pytest.fixture(scope="session")
def provisioned(invoke: FrontDoor, lab: Lab, as_provisioned: Snapshot) -> FrontDoor:
    """``invoke`` with both hosts provisioned, once for all tests; the first host is a clone of the second."""
    gpu01 = find_machine(lab, "gpu01")
    if read_record(gpu01.directory).snapshot != DESIRED:
        snapshots.thaw(gpu01, as_provisioned)
    done = invoke("provision", "--hosts", "gpu01,gpu02")
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return invoke


@pytest.fixture(scope="session")
def gpu01(lab: Lab) -> Machine:
    """The host that tests damage."""
    return find_machine(lab, "gpu01")


@pytest.fixture(scope="session")
def target(lab: Lab) -> TargetHost:
    """The host that tests damage, as a target of the engine."""
    return Fleet.load(lab.inventory.parent).targets("gpu01")[0]


Guest = Callable[[str, HostOptions], Machine]


@pytest.fixture(scope="module")
def guest(lab: Lab) -> Iterator[Guest]:
    """Boot another host of the lab for the tests of one file: ``guest("trixie01", options)``."""
    names: list[str] = []

    def bring(name: str, options: HostOptions) -> Machine:
        names.append(name)
        lab_fleet.up(lab, [name], options=options)
        return find_machine(lab, name)

    yield bring
    lab_fleet.remove(lab, names)


def on(machine: Machine, script: str) -> str:
    """Run a shell script as root on a host's console; return its output."""
    return console(machine, "sh", "-euc", script)
