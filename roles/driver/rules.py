"""Compatibility rules for the driver: kernels on which its module builds, and GPUs that it supports.

To teach Hostwright a new release, add a row: every refusal and every suggestion is computed from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from hostwright.roles import Choice, Ground, Misfit, disk_is_enough, kernel_version, memory_is_enough
from hostwright.standard.roles.driver.chips import Architecture, chips
from hostwright.standard.roles.driver.section import DriverSection


@dataclass(frozen=True, slots=True)
class DriverRow:
    """A driver release and the kernels that its module is known to build on unpatched."""

    version: str
    kernels: str
    source: str


DRIVERS = (
    DriverRow("450.80.02", "<5.5", "CUDA 11.0 installation guide: Ubuntu 20.04, kernel 5.4"),
    DriverRow("460.32.03", "<5.5", "CUDA 11.2 installation guide: Ubuntu 20.04, kernel 5.4"),
    DriverRow("460.106.00", "<5.5", "CUDA 11.2 installation guide: Ubuntu 20.04, kernel 5.4"),
    DriverRow("470.57.02", "<5.14", "Gentoo's ebuilds: NV_KERNEL_MAX 5.13"),
    DriverRow("470.82.01", "<5.16", "Gentoo's ebuilds: NV_KERNEL_MAX 5.15"),
    DriverRow("470.103.01", "<5.18", "Debian's package description: tested to 5.17"),
    DriverRow("470.129.06", "<5.19", "Ubuntu changelog, LP #1978539"),
    DriverRow("470.141.03", "<6.2", "Ubuntu changelog of nvidia-graphics-drivers-470"),
    DriverRow("470.161.03", "<6.2", "Ubuntu changelog, LP #2009246"),
    DriverRow("470.182.03", "<6.3", "Ubuntu changelog, LP #2019979"),
    DriverRow("470.199.02", "<6.5", "Ubuntu changelog; nixpkgs patch for 6.5"),
    DriverRow("470.223.02", "<6.7.3", "Gentoo patch gpl-pfn_valid; void-packages #48504"),
    DriverRow("470.239.06", "<6.9", "void-packages #53759: builds to 6.8"),
    DriverRow("470.256.02", "<6.10", "joanbm/nvidia-470xx-linux-mainline: 6.10 is the first that needs a patch"),
    DriverRow("520.61.05", "<5.16", "CUDA 11.8 installation guide: Ubuntu 22.04, kernel 5.15"),
)

#: first driver branch of a generation → the oldest and the newest architecture that it supports
DRIVER_GPUS = {
    450: (Architecture.KEPLER, Architecture.AMPERE),
    510: (Architecture.MAXWELL, Architecture.AMPERE),
    520: (Architecture.MAXWELL, Architecture.HOPPER),
    570: (Architecture.MAXWELL, Architecture.BLACKWELL),
}


def kernels_of(driver: str, section: DriverSection | None = None) -> str | None:
    """The kernels that a driver's module builds on, as conditions on a version; ``None`` if unknown.

    A stack's own statement about its driver overrides the table.
    """
    if section is not None and section.kernels is not None and section.version == driver:
        return section.kernels
    return next((row.kernels for row in DRIVERS if row.version == driver), None)


def gpus_of(driver: str) -> tuple[Architecture, Architecture] | None:
    """The oldest and newest architecture that a driver supports; ``None`` for a branch older than the table."""
    branch = int(driver.partition(".")[0])
    known = [first for first in DRIVER_GPUS if first <= branch]
    return DRIVER_GPUS[max(known)] if known else None


def drives_the_gpus(driver: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """The driver supports every GPU of the host."""
    driven = gpus_of(driver)
    for chip in chips(gpus):
        if driven and not driven[0] <= chip.architecture <= driven[1]:
            return Misfit(
                "gpu-driver",
                f"driver {driver} drives GPUs from {driven[0]} to {driven[1]}, and this is {chip.architecture} "
                f"({chip.name})",
                "NVIDIA's lists of supported GPUs by driver branch",
            )
    return None


def builds_on_the_kernel(driver: str, kernel: str, driver_section: DriverSection | None = None) -> Misfit | None:
    """The driver's module builds on the running kernel."""
    running, kernels = kernel_version(kernel), kernels_of(driver, driver_section)
    if running is None or kernels is None or SpecifierSet(kernels).contains(running):
        return None
    stated = driver_section is not None and driver_section.kernels is not None and driver_section.version == driver
    by_table = next((row.source for row in DRIVERS if row.version == driver and not stated), None)
    return Misfit(
        "driver-kernel",
        f"the module of driver {driver} builds on kernels {kernels}, not on {kernel}",
        by_table or "driver.kernels of the stack",
    )


def fabric_manager_is_of_the_driver(driver_section: DriverSection) -> Iterator[Misfit]:
    """Fabric Manager has exactly the driver's version."""
    manager, driver = driver_section.fabric_manager, driver_section.version
    if manager and manager.version.partition("-")[0] != driver:
        yield Misfit(
            "fabric-manager",
            f"Fabric Manager {manager.version} does not work with driver {driver}: both must be one version",
            "azhpc-images PR #86, gpu-operator #544",
            f"{manager.package} {driver}-1",
        )


def _on_a_kernel(driver: str, driver_section: DriverSection | None = None) -> str:
    return f"on a kernel {kernels_of(driver, driver_section)}"


def _on_gpus(driver: str) -> str:
    oldest, newest = gpus_of(driver) or (Architecture.KEPLER, Architecture.AMPERE)
    return f"on GPUs from {oldest} to {newest}"


RULES = (
    memory_is_enough,  # to compile the module
    disk_is_enough,
    drives_the_gpus,
    builds_on_the_kernel,
    fabric_manager_is_of_the_driver,
)
CHOICES = (Choice("driver", "driver", 50, tuple(row.version for row in DRIVERS), usual="470.182.03"),)
GROUNDS = (Ground("kernel", _on_a_kernel), Ground("gpus", _on_gpus))
