"""Sets of packages that make up a driver: what each brings, and NVIDIA's pin for its own repository.

Sources: NVIDIA driver installation guide ("Compute-only", "Version locking"), NVIDIA/gpu-driver-container and
Azure/azhpc-images (names before and since R580), Ubuntu server documentation and canonical/ubuntu-drivers-common
(``linux-modules-nvidia-*``), Debian's archive.
"""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import named_like
from hostwright.roles import Misfit
from hostwright.standard.roles.driver.modules import branch_of
from hostwright.standard.roles.driver.section import PINNING, DriverSection

#: From this branch on, names in NVIDIA's repository carry no branch, and a package of preferences chooses it.
FIRST_PINNED = 580
#: Names that bring the newest branch of NVIDIA's repository.
_NEWEST = ("nvidia-open", "cuda-drivers", "nvidia-driver", "nvidia-driver-open", "nvidia-driver-cuda", "nvidia-*-dkms")

#: what a set must bring → names of packages that bring it: Debian's and those of NVIDIA's repository for it, Ubuntu's
_PARTS = {
    "kernel module": ("*-dkms", "nvidia-dkms-*", "linux-modules-nvidia-*"),
    "libcuda.so.1": ("libcuda1", "libnvidia-compute*"),
    "libnvidia-ml.so.1": ("libnvidia-ml1", "libnvidia-compute*"),
    "nvidia-smi": ("nvidia-smi", "nvidia-utils-*", "nvidia-driver-cuda"),
    "nvidia-persistenced": ("nvidia-persistenced", "nvidia-compute-utils-*"),
}
_GUIDE = "NVIDIA driver installation guide"


def packages_are_whole(driver_section: DriverSection) -> Iterator[Misfit]:
    """A set of packages brings all parts of a driver: apt takes no other package with a driver's name."""
    names = driver_section.packages
    if not names:
        return
    modules = {"kernel module"} if driver_section.precompiled else set()
    lacking = [
        part
        for part, given in _PARTS.items()
        if part not in modules and not any(named_like(one, given) for one in names)
    ]
    if lacking:
        sentence = f"driver.packages bring no {' and no '.join(lacking)}, and apt takes no driver's package beside them"
        yield Misfit("driver-set", sentence, _GUIDE, " and ".join(" or ".join(_PARTS[part]) for part in lacking))
    if driver_section.precompiled and any(named_like(one, _PARTS["kernel module"]) for one in names):
        sentence = "the stack names a precompiled kernel module, and driver.packages bring another; name one of them"
        yield Misfit("driver-set", sentence, "Ubuntu server documentation, NVIDIA drivers")


def packages_are_pinned(driver_section: DriverSection) -> Iterator[Misfit]:
    """A set of NVIDIA's repository names the branch: in its names before R580, by a package of preferences since."""
    section, driver, branch = driver_section, driver_section.version, driver_section.branch
    pins = [name.removeprefix(PINNING) for name in section.packages if name.startswith(PINNING)]
    newest = [name for name in section.packages if named_like(name, _NEWEST)]
    if branch_of(driver) < FIRST_PINNED:
        if pins:
            sentence = f"{PINNING}{pins[0]} is for R{FIRST_PINNED} and later; names of driver {driver} carry the branch"
            yield Misfit("driver-pin", sentence, _GUIDE, f"nvidia-open-{branch}")
    elif not pins and newest and section.repository:
        sentence = (
            f"{newest[0]} follows the newest branch of its repository, and driver.packages name no pin for {driver}"
        )
        yield Misfit("driver-pin", sentence, _GUIDE, f"{PINNING}{driver}")
    for pin in pins:
        if branch_of(driver) >= FIRST_PINNED and pin not in {driver, branch}:
            sentence = f"{PINNING}{pin} pins another driver than {driver}"
            yield Misfit("driver-pin", sentence, _GUIDE, f"{PINNING}{driver}")
