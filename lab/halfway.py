"""Interrupted dpkg runs on lab hosts: the real dpkg is killed during its work on a package."""

from __future__ import annotations

from hostwright.common.quoting import sh_file
from lab.config import Machine
from lab.machine import console

PACKAGE = "hostwright-lab-halfway"
#: directory on the host for the hanging dpkg. A reboot removes the directory.
_WORK = "/run/hostwright-lab-halfway"


def half_configure(machine: Machine) -> None:
    """Leave a package half-configured, as after a dpkg killed during a postinst script.

    The small package, dpkg's state and the unfinished journal are real. `dpkg --configure -a` repairs the package.
    """
    _killed_at_work(machine, "sh/half_configure.sh", PACKAGE)


def half_unpack(machine: Machine, package: str = "make") -> None:
    """Leave a package of the distribution half-installed, as after a dpkg killed while unpacking.

    Package, files and dpkg's state are real; only a reinstallation repairs the package. Requires the package in apt's
    cache or a reachable mirror.
    """
    _killed_at_work(machine, "sh/half_unpack.sh", package)


def _killed_at_work(machine: Machine, begin: str, package: str) -> None:
    script = sh_file(__file__, begin, package=package, work=_WORK) + sh_file(__file__, "sh/kill_dpkg.sh", work=_WORK)
    console(machine, "sh", "-euc", script)
