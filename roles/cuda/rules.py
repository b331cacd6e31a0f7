"""Compatibility rules for the toolkit: drivers that run its compiled code, and GPUs that it supports."""

from __future__ import annotations

from hostwright.roles import Choice, Misfit, disk_is_enough, version
from hostwright.standard.roles.driver.chips import Architecture, chips

CUDA_TABLE = "CUDA release notes, table of toolkits and drivers"

#: toolkit → the oldest driver that supports it in full (PTX included)
DRIVER_FLOORS = {
    "11.2.0": "460.27.03",
    "11.2.1": "460.32.03",
    "11.2.2": "460.32.03",
    "11.4.0": "470.42.01",
    "11.4.1": "470.57.02",
    "11.4.2": "470.57.02",
    "11.4.3": "470.82.01",
    "11.4.4": "470.82.01",
    "11.8.0": "520.61.05",
}

#: major version of a toolkit → the oldest driver that runs code already compiled for the GPU (cubins) by any of its
#: minor versions: CUDA's minor-version compatibility. NVIDIA's own images of 11.8 require driver 450, 470 or newer.
CUBIN_FLOORS = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}
CUBIN_TABLE = "CUDA compatibility guide, minor-version compatibility (docs.nvidia.com/deploy/cuda-compatibility)"

#: toolkit → the newest gcc that its nvcc takes as host compiler; newer ones are refused by crt/host_config.h
NEWEST_GCC = {
    **dict.fromkeys(("11.2.0", "11.2.1", "11.2.2", "11.4.0"), 10),
    **dict.fromkeys(("11.4.1", "11.4.2", "11.4.3", "11.4.4", "11.8.0"), 11),
}

#: the first toolkit that supports an architecture, if that is newer than the oldest one here
TOOLKIT_FOR = {Architecture.ADA: "11.8", Architecture.HOPPER: "11.8", Architecture.BLACKWELL: "12.8"}


def is_known(cuda: str) -> Misfit | None:
    """It is known which drivers the toolkit needs."""
    if cuda in DRIVER_FLOORS:
        return None
    known = ", ".join(DRIVER_FLOORS)
    return Misfit("cuda", f"CUDA {cuda} is not in the table (there are {known})", CUDA_TABLE)


def cubin_floor(cuda: str) -> str | None:
    """The oldest driver that runs code that this toolkit compiled for the GPU; ``None`` if unknown."""
    full = DRIVER_FLOORS.get(cuda)
    return CUBIN_FLOORS.get(cuda.partition(".")[0], full) if full else None


def runs_on_the_driver(cuda: str, driver: str) -> Misfit | None:
    """The driver is new enough for the toolkit's major version, which suffices to run compiled code."""
    floor = cubin_floor(cuda)
    if floor is None or version(driver) >= version(floor):
        return None
    return Misfit("cuda-driver", f"CUDA {cuda} needs driver {floor} or newer, not {driver}", CUBIN_TABLE)


def has_code_for_the_gpus(cuda: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """The toolkit supports every GPU of the host."""
    for chip in chips(gpus):
        first = TOOLKIT_FOR.get(chip.architecture)
        if first and version(cuda) < version(first):
            return Misfit(
                "gpu-cuda",
                f"{chip.architecture} GPUs ({chip.name}) need CUDA {first} or newer, not {cuda}",
                "CUDA release notes: new architectures",
            )
    return None


RULES = (disk_is_enough, is_known, runs_on_the_driver, has_code_for_the_gpus)
CHOICES = (Choice("cuda", "CUDA", 30, tuple(DRIVER_FLOORS), usual="11.2.2"),)
