"""Stacks of today on Debian 13: R580, R595 and R620 under NVIDIA's package names, with the files of Debian's R550.

No public index carries these branches. The packages' names, versions, layout and repository are as NVIDIA's, and DKMS
builds the module of their sources; all that reports says what the files are. What stands in for the kernel is as in
`test_debian13`, and so are the headers. Each test goes on where the last one ended.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.common.errors import DIFFERS
from lab import stack
from lab.config import Machine
from lab.machine import exec_in
from tests.lab.conftest import FrontDoor, on
from tests.places import PROJECT
from tests.real.conftest import Guest
from tests.real.test_debian13 import DAEMON, HOST, OLDER, OPTIONS, as_desired, left

TODAY = stack.of_today()
NAME = "pytorch-2.14"
STACK, V = f"lab-repackaged-{NAME}", TODAY[NAME]
NEWER = ("pytorch-2.15", "pytorch-2.15-r620")  #: R595 and R620
LABEL = "repackaged: the files are 550.163.01's"
ON = ("--hosts", HOST, "--var", f"stack={STACK}")
DRIVERS = "dpkg-query -W -f '${db:Status-Abbrev} ${Version}\\n' 'nvidia-driver-*' libcuda1 'nvidia-kernel-*'"
DRIVER = ("--roles", "base,driver")


@pytest.fixture(scope="module")
def host(guest: Guest) -> tuple[Machine, FrontDoor]:
    machine, door = guest(HOST, STACK, OPTIONS)
    on(machine, OLDER + DAEMON)
    return machine, door


def status_of_the_lab(door: FrontDoor) -> str:
    words = [sys.executable, "-m", "lab", "status", "--name", door.lab.name]
    return subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=True).stdout


def test_a_bare_host_gets_the_driver_under_its_own_names(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    as_desired(door, *ON[2:], *DRIVER)
    assert "installed" in on(machine, f"dkms status nvidia/{V}")
    fields = ("version", "license", "repackaged")
    assert [on(machine, f"modinfo -F {field} nvidia").strip() for field in fields] == [
        V, "Dual MIT/GPL", LABEL.removeprefix("repackaged: ")
    ]  # fmt: skip
    assert on(machine, "modinfo -F vermagic nvidia").startswith("6.1.")
    assert on(machine, "cat /sys/module/nvidia/version").strip() == V
    about = on(machine, "dpkg-query -W -f '${Version} ${Description}' nvidia-driver-cuda")
    assert about.startswith(f"{V}-1 ") and LABEL in about
    asked = exec_in(machine, ["nvidia-smi"])
    assert asked.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in asked.stdout + asked.stderr


def test_every_report_says_what_the_files_are(host: tuple[Machine, FrontDoor], tmp_path: Path) -> None:
    machine, door = host
    page, sboms = tmp_path / "audit.html", tmp_path / "sboms"
    audited = door("audit", *ON, *DRIVER, "--html", str(page), "--cyclonedx", str(sboms))
    told = {tuple(line.split()[1:-1]) for line in audited.stdout.splitlines() if line.endswith("=")}
    assert {("libcuda", V), ("dkms", V), ("libnvidia-ml", V)} <= told, audited.stdout
    reports = {
        "audit": audited.stdout,
        "html": page.read_text("utf-8").replace("&#39;", "'"),
        "sbom": next(sboms.iterdir()).read_text(),
        "json": door("audit", *ON, *DRIVER, "--json").stdout,
        "plan": door("plan", *ON, *DRIVER).stdout,
        "stacks": door("stacks").stdout,
        "stacks for hosts": door("stacks", "--hosts", HOST).stdout,
        "facts": on(machine, "cat /var/lib/hostwright/release.json"),
        "lab status": status_of_the_lab(door),
    }
    assert [name for name, text in reports.items() if LABEL not in " ".join(text.split())] == []


def has_only(machine: Machine, version: str) -> None:
    """Assert that every package, the built module, the loaded one and the pin are of this driver."""
    rows = [line.split() for line in on(machine, DRIVERS).splitlines()]
    assert {row[1] for row in rows if row[0] == "hi"} == {f"{version}-1"}
    built = on(machine, "dkms status nvidia").splitlines()
    assert [line.partition(",")[0] for line in built] == [f"nvidia/{version}"]
    assert on(machine, "modinfo -F version nvidia").strip() == version
    assert on(machine, "cat /sys/module/nvidia/version").strip() == version
    assert on(machine, "ls /etc/apt/preferences.d | grep nvidia").split() == [f"nvidia-driver-pinning-{version}"]


@pytest.mark.parametrize("name", NEWER)
def test_a_newer_branch_takes_the_place_of_the_older(host: tuple[Machine, FrontDoor], name: str) -> None:
    machine, door = host
    other = ("--var", f"stack=lab-repackaged-{name}", *DRIVER)
    planned = door("plan", "--hosts", HOST, *other)
    assert planned.returncode == DIFFERS, planned.stdout
    as_desired(door, *other)
    has_only(machine, TODAY[name])


def test_rollback_brings_the_older_branch_again(host: tuple[Machine, FrontDoor]) -> None:
    """NVIDIA's pin has a priority that lets apt go back to an older version.

    The inventory still says R580, so the stack that the host has now is named.
    """
    machine, door = host
    done = door("rollback", "--hosts", HOST, "--var", f"stack=lab-repackaged-{NEWER[1]}", *DRIVER, "--force")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    has_only(machine, TODAY[NEWER[0]])


def test_removed_nothing_of_it_is_left(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    last = ("--hosts", HOST, "--var", f"stack=lab-repackaged-{NEWER[0]}")
    done = door("remove", *last, "--roles", "driver")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert not left(machine)
    places = "/usr/src/nvidia* /var/lib/dkms/nvidia* /lib/modules/*/updates/dkms/nvidia* /usr/lib/firmware/nvidia"
    places += " /etc/apt/preferences.d/* /etc/apt/sources.list.d/nvidia* /usr/share/hostwright"
    assert not on(machine, f"ls -d {places} 2>/dev/null || :")
    assert LABEL not in status_of_the_lab(door)
