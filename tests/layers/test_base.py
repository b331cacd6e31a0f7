"""What the other layers stand on: a sound dpkg, a compiler that compiles, a kernel that stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.plan.targets import TargetHost
from hostwright.standard.roles.driver.apt_answers import DIST_UPGRADE, apt_answers

Run = Callable[..., CommandResult]

#: A kernel module of three lines, compiled in a directory of its own that is removed again.
BUILD_MODULE = """\
set -e
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
printf '%s\\n' '#include <linux/module.h>' 'MODULE_LICENSE("GPL");' >"$work/probe.c"
echo 'obj-m := probe.o' >"$work/Makefile"
make -s -C "/lib/modules/$(uname -r)/build" M="$work" modules
test -s "$work/probe.ko"
"""


def test_dpkg_is_in_order(root_run: Run) -> None:
    """dpkg has no package that is half installed or waits to be configured."""
    audit = root_run("dpkg --audit")
    assert audit.rc == 0
    assert audit.stdout == "", f"dpkg --audit says: {audit.stdout.strip()}"


def test_packages_are_installed(host: Host, variables: Any) -> None:
    """Every package of the base layer is installed."""
    query = "dpkg-query -W -f='${Package} ${Status}\\n'" + " %s" * len(variables.packages)
    rows = [row.split() for row in host.run(query, *variables.packages).stdout.splitlines()]
    installed = {row[0] for row in rows if row[1] in ("install", "hold") and row[2:] == ["ok", "installed"]}
    missing = [name for name in variables.packages if name not in installed]
    assert not missing, f"not installed: {', '.join(missing)}"


@pytest.mark.beside
def test_a_kernel_module_compiles(root_run: Run) -> None:
    """A kernel module compiles for the running kernel, so its headers, the compiler and make fit each other."""
    built = root_run(BUILD_MODULE)
    assert built.rc == 0, f"it does not: {(built.stderr or built.stdout).strip()[-500:]}"


def test_dkms_works(root_once: Run) -> None:
    """DKMS is there and can read its own tree."""
    status = root_once("dkms status")
    assert status.rc == 0, status.stderr.strip()


def test_kernels_are_held(host: Host) -> None:
    """Every installed kernel package is held, so that no upgrade leaves the driver behind."""
    query = "dpkg-query -W -f='${db:Status-Abbrev} ${Package}\\n' 'linux-image-*' 'linux-headers-*'"
    rows = host.run(query).stdout.splitlines()  # it ends with 1 where one of the patterns matches nothing
    loose = [row.split()[-1] for row in rows if row.startswith("ii")]
    assert not loose, f"not held: {', '.join(loose)}"


@pytest.mark.beside
def test_an_upgrade_would_not_touch_kernels_or_drivers(root_once: Run, target: TargetHost) -> None:
    """A full upgrade of everything, simulated, moves no kernel and brings no NVIDIA driver."""
    plan = apt_answers(root_once, target.context)[DIST_UPGRADE]
    assert plan.rc == 0, plan.stderr.strip()
    moved = [line.split()[1] for line in plan.stdout.splitlines() if line.startswith("Inst ")]
    bad = [name for name in moved if name.startswith(("linux-image", "linux-headers", "nvidia-driver", "cuda-drivers"))]
    assert not bad, f"it would install {', '.join(bad)}"


def test_unattended_upgrades_are_fenced(root_run: Run) -> None:
    """Unattended upgrades leave NVIDIA's packages and kernels alone."""
    fenced = root_run("apt-config dump Unattended-Upgrade::Package-Blacklist")
    for name in ("nvidia-", "libnvidia-", "cuda-", "linux-image-"):
        assert f'"{name}"' in fenced.stdout, f"{name}* is not on apt's list"
