"""Compatibility rules for the driver: supported kernels, supported GPUs, kinds of kernel module.

Refusals and suggestions are computed from the tables. Add a row for each new release.

Sources of the package sets: NVIDIA driver installation guide ("Compute-only", "Version locking"),
NVIDIA/gpu-driver-container, Azure/azhpc-images, Ubuntu server documentation, canonical/ubuntu-drivers-common, Debian's
archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from hostwright.resources import named_like
from hostwright.roles import Choice, Ground, Misfit, Stack, disk_is_enough, kernel_version, memory_is_enough, version
from hostwright.standard.roles.driver import modules
from hostwright.standard.roles.driver.chips import NVIDIA, NVLINK5, RACK_CARDS, Architecture, chips
from hostwright.standard.roles.driver.modules import branch_of
from hostwright.standard.roles.driver.section import PINNING, DriverSection

#: first driver branch for which the names of NVIDIA's driver packages lack the branch number
FIRST_PINNED = 580
#: name patterns of packages that install the newest branch in NVIDIA's repository
_NEWEST = ("nvidia-open", "cuda-drivers", "nvidia-driver", "nvidia-driver-open", "nvidia-driver-cuda", "nvidia-*-dkms")

#: part of a driver → name patterns of packages with this part, first Debian's and then Ubuntu's
_PARTS = {
    "kernel module": ("*-dkms", "nvidia-dkms-*", "linux-modules-nvidia-*"),
    "libcuda.so.1": ("libcuda1", "libnvidia-compute*"),
    "libnvidia-ml.so.1": ("libnvidia-ml1", "libnvidia-compute*"),
    "nvidia-smi": ("nvidia-smi", "nvidia-utils-*", "nvidia-driver-cuda"),
    "nvidia-persistenced": ("nvidia-persistenced", "nvidia-compute-utils-*"),
}
_GUIDE = "NVIDIA driver installation guide"


def packages_are_whole(driver_section: DriverSection) -> Iterator[Misfit]:
    """Check that the stack's packages contain all parts of a driver. apt preferences block any other driver package."""
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
        sentence = (
            f"driver.packages have no {' and no '.join(lacking)}, and apt may install only the driver "
            "packages that the stack names"
        )
        yield Misfit("driver-set", sentence, _GUIDE, " and ".join(" or ".join(_PARTS[part]) for part in lacking))
    if driver_section.precompiled and any(named_like(one, _PARTS["kernel module"]) for one in names):
        sentence = (
            "the stack names a precompiled kernel module, and driver.packages contain another one; name only one of "
            "them"
        )
        yield Misfit("driver-set", sentence, "Ubuntu server documentation, NVIDIA drivers")


def packages_are_pinned(driver_section: DriverSection) -> Iterator[Misfit]:
    """Check that the stack's packages from NVIDIA's repository fix the driver's branch: by their names before R580,
    since then by a pinning package.
    """
    section, driver, branch = driver_section, driver_section.version, driver_section.branch
    pins = [name.removeprefix(PINNING) for name in section.packages if name.startswith(PINNING)]
    newest = [name for name in section.packages if named_like(name, _NEWEST)]
    if branch_of(driver) < FIRST_PINNED:
        if pins:
            sentence = f"{PINNING}{pins[0]} is for R{FIRST_PINNED} and later; names of driver {driver} carry the branch"
            yield Misfit("driver-pin", sentence, _GUIDE, f"nvidia-open-{branch}")
    elif not pins and newest and section.repository:
        sentence = (
            f"{newest[0]} follows the newest branch of its repository, and driver.packages have no pin for {driver}"
        )
        yield Misfit("driver-pin", sentence, _GUIDE, f"{PINNING}{driver}")
    for pin in pins:
        if branch_of(driver) >= FIRST_PINNED and pin not in {driver, branch}:
            sentence = f"{PINNING}{pin} pins another driver than {driver}"
            yield Misfit("driver-pin", sentence, _GUIDE, f"{PINNING}{driver}")


@dataclass(frozen=True, slots=True)
class DriverRow:
    """Driver release, and kernels on which its module builds without patches (empty: no known limit).

    ``offered``: whether suggestions may name the release.
    """

    version: str
    kernels: str
    source: str
    offered: bool = True


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
    DriverRow("530.30.02", "<6.3", "open-gpu-kernel-modules #497", offered=False),
    DriverRow("530.41.03", "<6.4", "open-gpu-kernel-modules #501: fixed in 525.116.04, and in no 530", offered=False),
    # pfn_valid() became GPL-only in 6.1.76, 6.6.15 and 6.7.3. Debian's `uname -r` prints 6.1.0 for every 6.1.
    DriverRow("535.154.05", "<6.6.15,!=6.1.*", "void-packages #48504, xanmod-linux #411", offered=False),
    DriverRow("535.309.01", "<7.3", "own build on 7.3.4: tests/fixtures/build/make-7.3-535.txt", offered=False),
    DriverRow("545.29.06", "<6.6.15,!=6.1.*", "xanmod-linux #411, #412", offered=False),
    DriverRow("550.78", "<6.10", "nixpkgs #332350", offered=False),
    DriverRow("550.163.01", "<6.17", "open-gpu-kernel-modules #1143", offered=False),
    DriverRow("555.58.02", "<6.17", "open-gpu-kernel-modules #1143", offered=False),
    DriverRow("560.35.03", "<6.12", "liquorix-package #185", offered=False),
    DriverRow("565.77", "<6.13", "open-gpu-kernel-modules #751", offered=False),
    DriverRow("570.153.02", "<6.15", "void-packages #55536", offered=False),
    DriverRow("575.51.02", "<6.15", "open-gpu-kernel-modules #840", offered=False),
    DriverRow("580.105.08", "<6.18", "open-gpu-kernel-modules PR #951", offered=False),
    DriverRow("580.119.02", "<7,!=6.17.9", "nvidia-all #379: not on 7.0, but on 6.18.32; pop-os #3811", offered=False),
    DriverRow("580.142", "<7.1", "void-packages #61087; fixed in 580.159.04", offered=False),
    DriverRow("580.159.04", "", "void-packages #61087: builds on 7.1"),
    DriverRow("580.178.04", "", "NVIDIA driver documentation, R580"),
    DriverRow("590.48.01", "<6.19", "open-gpu-kernel-modules #1021, linux-tkg #1186", offered=False),
    DriverRow("595.91.07", "", "NVIDIA driver documentation, R595"),
    DriverRow("620.70.06", "", "NVIDIA driver documentation, R620"),
)

#: first driver branch of a range → oldest and newest GPU architecture that the range supports
DRIVER_GPUS = {
    450: (Architecture.KEPLER, Architecture.AMPERE),
    510: (Architecture.MAXWELL, Architecture.AMPERE),
    520: (Architecture.MAXWELL, Architecture.HOPPER),
    570: (Architecture.MAXWELL, Architecture.BLACKWELL),
    590: (Architecture.TURING, Architecture.BLACKWELL),
}
GPUS_SOURCE = "NVIDIA's lists of supported GPUs by driver branch"


@dataclass(frozen=True, slots=True)
class FirstDriver:
    """Oldest driver for the GPUs with PCI IDs from ``first`` to ``last``.

    These GPUs were released later than the rest of their architecture.
    """

    first: int
    last: int
    name: str
    driver: str
    source: str


BOARD = 8  #: number of GPUs on an HGX board

FIRST_DRIVERS = (
    FirstDriver(0x2900, 0x29FF, "HGX B200", "570.133.20", "NVIDIA GPU Operator, platform support"),
    FirstDriver(0x2BB5, 0x2BB5, "RTX PRO 6000 Server Edition", "575.57.08", "NVIDIA GPU Operator, platform support"),
    FirstDriver(0x2C3A, 0x2C3A, "RTX PRO 4500 Server Edition", "595.58.03", "NVIDIA's lists of supported chips"),
)


def kernels_of(driver: str, section: DriverSection | None = None) -> str | None:
    """Return version conditions of the kernels on which the driver's module builds; ``None`` if unknown.

    ``kernels`` in ``section`` (a stack's driver section) overrides the table.
    """
    if section is not None and section.kernels is not None and section.version == driver:
        return section.kernels
    row = row_of(driver)
    return row.kernels or None if row else None


def row_of(driver: str) -> DriverRow | None:
    """Return the row of ``DRIVERS`` for ``driver``, else of the next newer release of the same branch.

    An older release never builds on more kernels.
    """
    branch = [row for row in DRIVERS if modules.branch_of(row.version) == modules.branch_of(driver)]
    return next((row for row in branch if version(row.version) >= version(driver)), None)


def gpus_of(driver: str) -> tuple[Architecture, Architecture] | None:
    """Return the oldest and newest architecture that ``driver`` supports; ``None`` for an unlisted old branch."""
    branch = int(driver.partition(".")[0])
    known = [first for first in DRIVER_GPUS if first <= branch]
    return DRIVER_GPUS[max(known)] if known else None


def drives_the_gpus(driver: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """Check that the driver version ``driver`` supports the architecture of every GPU in the host."""
    driven = gpus_of(driver)
    for chip in chips(gpus):
        if driven and not driven[0] <= chip.architecture <= driven[1]:
            return Misfit(
                "gpu-driver",
                f"driver {driver} supports GPUs from {driven[0]} to {driven[1]}, not {chip.architecture} ({chip.name})",
                GPUS_SOURCE,
            )
    return None


def knows_the_cards(driver: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """Check that the driver version supports each GPU that was released later than the rest of its architecture."""
    if drives_the_gpus(driver, gpus):
        return None
    for row in FIRST_DRIVERS:
        known = any(vendor == NVIDIA and row.first <= device <= row.last for vendor, device in gpus)
        if known and version(driver) < version(row.driver):
            sentence = f"{row.name} needs driver {row.driver} or newer, but the stack has {driver}"
            return Misfit("gpu-driver", sentence, row.source)
    return None


def has_the_module(driver: str, driver_section: DriverSection) -> Misfit | None:
    """Check that the driver version ``driver`` contains the kind of kernel module that the stack requires."""
    return modules.misfit(driver_section.kind, driver, ())


def module_runs_the_gpus(
    driver: str, gpus: tuple[tuple[int, int], ...], driver_section: DriverSection | None = None
) -> Misfit | None:
    """Check that one kind of the driver's kernel module, or the stack's kind, supports every GPU of the host."""
    wanted = driver_section.kind if driver_section else "auto"
    if drives_the_gpus(driver, gpus) or modules.misfit(wanted, driver, ()):
        return None
    return modules.misfit(wanted, driver, gpus)


def builds_on_the_kernel(driver: str, kernel: str, driver_section: DriverSection | None = None) -> Misfit | None:
    """Check that the module of the driver version ``driver`` builds on the running kernel."""
    running, kernels = kernel_version(kernel), kernels_of(driver, driver_section)
    if running is None or kernels is None or SpecifierSet(kernels).contains(running):
        return None
    stated = driver_section is not None and driver_section.kernels is not None and driver_section.version == driver
    row = None if stated else row_of(driver)
    as_newer = f" (a limit known from driver {row.version})" if row and row.version != driver else ""
    return Misfit(
        "driver-kernel",
        f"driver {driver} does not support kernel {kernel}: its module supports kernels {kernels}{as_newer}",
        row.source if row else "driver.kernels of the stack",
    )


def fabric_manager_is_of_the_driver(driver_section: DriverSection) -> Iterator[Misfit]:
    """Check that Fabric Manager and IMEX have exactly the driver's version."""
    driver, section = driver_section.version, driver_section
    source = "azhpc-images PR #86, gpu-operator #544"
    parts = (
        ("Fabric Manager", section.fabric_manager, section.fabric_manager_package),
        ("IMEX", section.imex, section.imex_package),
    )
    for name, part, package in parts:
        if part and part.version.partition("-")[0] != driver:
            sentence = f"{name} {part.version} does not work with driver {driver}: their versions must be equal"
            yield Misfit("fabric-manager", sentence, source, f"{package} {driver}-1")


def a_whole_board_has_its_subnet_manager(
    driver: str, gpus: tuple[tuple[int, int], ...], driver_section: DriverSection
) -> Misfit | None:
    """Check that the stack has a subnet manager if the host has a whole NVLink 5 board (eight GPUs)."""
    manager = driver_section.fabric_manager
    boards = [gpu for gpu in gpus if {chip.name for chip in chips((gpu,))} & NVLINK5 and gpu[1] not in RACK_CARDS]
    if len(boards) < BOARD or manager is None or manager.subnet_manager:
        return None
    sentence = (
        f"HGX boards with {BOARD} B200 or B300 GPUs need an NVLink subnet manager, but the stack with "
        f"driver {driver} has none"
    )
    return Misfit("subnet-manager", sentence, "gpu-driver-container; siderolabs/extensions PR #717", "hgx-b200")


def a_tray_has_a_stack_of_its_own(machine: str, gpus: tuple[tuple[int, int], ...], stack: Stack) -> Misfit | None:
    """Check that the stack is for aarch64 if the host is a compute tray (a node) of a rack."""
    racks = {device for vendor, device in gpus if vendor == NVIDIA} & RACK_CARDS
    if not racks or machine == stack.requirements.machine:
        return None
    sentence = (
        f"compute trays of GB200 and GB300 racks have {machine} processors. {stack.name}, like all "
        f"standard stacks, is for {stack.requirements.machine}"
    )
    own = f"NVIDIA's own image; or your own stack for {machine}, with the driver's packages and driver.imex"
    return Misfit("rack", sentence, "docs/operators/stacks.md, NVSwitches, NVLink 5 and racks", own)


def _on_a_kernel(driver: str, driver_section: DriverSection | None = None) -> str:
    return f"on a kernel {kernels_of(driver, driver_section)}"


def _on_gpus(driver: str) -> str:
    oldest, newest = gpus_of(driver) or (Architecture.KEPLER, Architecture.AMPERE)
    return f"on GPUs from {oldest} to {newest}"


RULES = (
    memory_is_enough,  # compiling the module needs memory
    disk_is_enough,
    drives_the_gpus,
    knows_the_cards,
    has_the_module,
    module_runs_the_gpus,
    builds_on_the_kernel,
    fabric_manager_is_of_the_driver,
    a_whole_board_has_its_subnet_manager,
    a_tray_has_a_stack_of_its_own,
    packages_are_whole,
    packages_are_pinned,
)
_OFFERED = tuple(row.version for row in DRIVERS if row.offered)
CHOICES = (Choice("driver", "driver", 50, _OFFERED, usual="470.182.03"),)
GROUNDS = (Ground("kernel", _on_a_kernel), Ground("gpus", _on_gpus))
