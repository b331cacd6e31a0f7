"""Debian 12 with its own R535 of the security archive, whose proprietary module DKMS builds for Debian 12's own kernel.

The open module stays at an older version than the rest of the driver there. What stands in is as in `test_debian13`.
Each test goes on where the last one ended.
"""

from __future__ import annotations

import pytest
import yaml

from hostwright.common.errors import DIFFERS
from lab.config import HostOptions, Machine
from tests.lab.conftest import FrontDoor, on
from tests.real.conftest import Guest
from tests.real.test_debian13 import ASKS_THE_KERNEL, DAEMON, HOST, as_desired, kind, left

STACK = "lab-debian12-real-packages"
OPTIONS = HostOptions(profile="small", distro="bookworm", real="packages")
#: Unpacks the headers of the oldest kernel that Debian 12's archive has, and points to them.
EARLIER = """
headers=$(apt-cache pkgnames linux-headers-6.1.0- | grep -E -- '-[0-9]+-amd64$' | sort -V | head -n 1)
mkdir /root/earlier
cd /root/earlier
apt-get -o APT::Sandbox::User=root download -q "$headers" "${headers%-amd64}-common"
for package in *.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C / ./usr; done
ln -sfn "/usr/src/$headers" "/lib/modules/$(uname -r)/build"
ln -sfn "/usr/src/${headers%-amd64}-common" "/lib/modules/$(uname -r)/source"
"""
V, OLDER = "535.309.01", "535.261.03"
LIBRARY = f"/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.{V}"
#: the packages of the one kind of module, and of the other
PROPRIETARY = ("nvidia-kernel-dkms", "nvidia-kernel-support")
OPEN = ("nvidia-open-kernel-dkms", "nvidia-open-kernel-support")


@pytest.fixture(scope="module")
def host(guest: Guest) -> tuple[Machine, FrontDoor]:
    machine, door = guest(HOST, STACK, OPTIONS)
    on(machine, DAEMON)
    stacks = door.lab.inventory.parent / "stacks"
    own = yaml.safe_load((stacks / f"{STACK}.yml").read_text())["driver"]["packages"]
    theirs = {name: text.replace(f"{V}-0+deb12u1", f"{OLDER}-1") for name, text in own.items() if text}
    theirs["nvidia-modprobe"] = own["nvidia-modprobe"]  # main has it at another version than the rest
    without = dict.fromkeys(PROPRIETARY)
    for name, version, packages in (
        ("newer-open", V, {**without, **dict.fromkeys(OPEN, f"{V}-0+deb12u1")}),
        ("older-open", OLDER, {**theirs, **without, **dict.fromkeys(OPEN, f"{OLDER}-1")}),
        ("mixed-open", V, {**without, **dict.fromkeys(OPEN, f"{OLDER}-1")}),
    ):
        values = {"version": version, "module": "open", "kernels": ">=3.10", "packages": packages}
        (stacks / f"{name}.yml").write_text(yaml.safe_dump({"extends": STACK, "driver": values}))
    return machine, door


def chosen(stack: str) -> tuple[str, ...]:
    return ("--hosts", HOST, "--var", f"stack={stack}")


def packages(machine: Machine) -> str:
    return on(machine, "dpkg-query -W -f '${Package} ${Version} ${Status}\\n'")


def refuse_the_open_module(machine: Machine, door: FrontDoor) -> None:
    """Provision the newer driver with its open module, which no source has: packages and loaded module stay."""
    loaded = "cat /sys/module/nvidia/version 2>/dev/null || echo none"
    before = packages(machine), on(machine, loaded)
    done = door("provision", *chosen("newer-open"), "--roles", "driver")
    assert done.returncode != 0
    for name in OPEN:
        assert f"no source of this host has {name} {V}-0+deb12u1: they have {OLDER}-1" in done.stdout, done.stdout
    assert (packages(machine), on(machine, loaded)) == before


def test_the_open_module_beside_a_newer_driver_is_refused_with_the_stack(host: tuple[Machine, FrontDoor]) -> None:
    _, door = host
    done = door("plan", *chosen("mixed-open"))
    assert done.returncode not in {0, DIFFERS}
    assert (
        f"the driver's version is {V}, but packages contain nvidia-open-kernel-dkms {OLDER}-1"
        in done.stdout + done.stderr
    )


def test_a_version_of_the_open_module_that_nobody_has_changes_no_package(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    done = door("provision", "--hosts", HOST, "--roles", "base")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    refuse_the_open_module(machine, door)


def test_a_bare_host_gets_debians_driver(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    as_desired(door)
    assert "installed" in on(machine, f"dkms status nvidia-current/{V}")
    assert (kind(machine, "nvidia-current"), kind(machine, "nvidia-current-open")) == ("NVIDIA", "")
    assert on(machine, "modinfo -F vermagic nvidia-current").startswith("6.1.")
    assert on(machine, "docker version -f '{{.Server.Version}}'").startswith("20.10")


def test_a_loaded_module_stays_where_apt_cannot_install_another(host: tuple[Machine, FrontDoor]) -> None:
    refuse_the_open_module(*host)


def test_verify_fails_in_what_asks_the_kernel_for_a_card_alone(host: tuple[Machine, FrontDoor]) -> None:
    _, door = host
    [verified] = door.json("verify", "--hosts", HOST, status=1)["hosts"]
    failed = {check["check"] for check in verified["checks"] if check["checked"] and not check["passed"]}
    assert failed == ASKS_THE_KERNEL - {"test_it_lists_every_card"}  # PyTorch's


def test_an_audit_reads_version_source_and_kind(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    done = door("audit", "--hosts", HOST)
    rows = {tuple(line.split()) for line in done.stdout.splitlines()}
    wanted = [("libcuda", V, "="), ("dkms", V, "="), ("version", V), ("source", "packages"), ("module", "proprietary")]
    assert {("driver", *row) for row in wanted} <= rows, done.stdout
    assert "bookworm-security" in on(machine, "apt-cache madison nvidia-kernel-dkms | head -n 1")


def test_what_is_damaged_is_planned_and_brought_again(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    on(machine, f"rm {LIBRARY}; apt-mark unhold nvidia-smi")
    planned = door("plan", "--hosts", HOST)
    assert planned.returncode == DIFFERS, planned.stdout
    as_desired(door)
    on(machine, f"test -e {LIBRARY}")


def test_the_older_open_module_does_not_build_on_the_kernel_of_today(host: tuple[Machine, FrontDoor]) -> None:
    """Debian 12's 6.1.192 has a pci_resize_resource() with four arguments, as Debian 13's 6.12.107."""
    _, door = host
    done = door("provision", *chosen("older-open"))
    assert done.returncode != 0, done.stdout[-3000:]
    assert "did not compile" in done.stdout
    [found] = door.json("doctor", *chosen("older-open"), status=3)["hosts"]
    evidence = {finding["rule"]: finding["evidence"] for finding in found["findings"]}
    error = "nv-pci.c:223:9: error: too few arguments to function ‘pci_resize_resource’"
    assert any(error in line for line in evidence["dkms-build"]), evidence


def test_the_whole_older_set_has_the_open_module(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    on(machine, EARLIER)
    as_desired(door, "--var", "stack=older-open")
    assert (kind(machine, "nvidia-current"), kind(machine, "nvidia-current-open")) == ("", "Dual MIT/GPL")
    assert "installed" in on(machine, f"dkms status nvidia-current-open/{OLDER}")


def test_removed_nothing_of_it_is_left(host: tuple[Machine, FrontDoor]) -> None:
    machine, door = host
    done = door("remove", *chosen("older-open"), "--roles", "container,driver")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert not left(machine)
