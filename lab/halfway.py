"""A dpkg killed in mid-run: what it leaves on a real host, made by the real dpkg with real packages."""

from __future__ import annotations

from hostwright.common.quoting import sh_file
from lab.config import Machine
from lab.machine import console

PACKAGE = "hostwright-lab-halfway"
_WORK = "/run/hostwright-lab-halfway"  #: a reboot removes it, and with it what makes the package hang


def half_configure(machine: Machine) -> None:
    """Leave a package half-configured: dpkg was killed in the middle of a postinst.

    Real: the package (a tiny one, made in the host), dpkg's state and its unfinished journal. `dpkg --configure -a`
    repairs it.
    """
    _killed_at_work(machine, "sh/half_configure.sh", PACKAGE)


def half_unpack(machine: Machine, package: str = "make") -> None:
    """Leave a package of the distribution half-installed: dpkg was killed in the middle of its files.

    Real: package, files and dpkg's state, which requires a reinstallation; `dpkg --configure -a` alone does not repair
    it. Stand-in: a dpkg-deb that hangs chooses the point at which dpkg is killed. Needs the package in apt's cache, or
    a reachable mirror.
    """
    _killed_at_work(machine, "sh/half_unpack.sh", package)


def _killed_at_work(machine: Machine, begin: str, package: str) -> None:
    """Run the script that starts dpkg, then the one that kills it."""
    script = sh_file(__file__, begin, package=package, work=_WORK) + sh_file(__file__, "sh/kill_dpkg.sh", work=_WORK)
    console(machine, "sh", "-euc", script)
