"""What fits the toolkit: drivers that run what it compiles, and GPUs that it has code for."""

from __future__ import annotations

from hostwright.stack.fitting import Choice, Misfit
from hostwright.stack.rules import disk_is_enough
from hostwright.stack.versions import version
from hostwright.standard.roles.driver.chips import Architecture, chips

CUDA_TABLE = "CUDA release notes, table of toolkits and drivers"

#: toolkit → the oldest driver that it may be used with in full (PTX included)
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

#: major version of a toolkit → the oldest driver that runs what is compiled for the GPU already (cubins), of whatever
#: minor version: CUDA's minor-version compatibility. NVIDIA's own images of 11.8 ask for driver 450, 470 or newer.
CUBIN_FLOORS = {"11": "450.80.02"}
CUBIN_TABLE = "CUDA compatibility guide, minor-version compatibility (docs.nvidia.com/deploy/cuda-compatibility)"

#: the first toolkit that has code for an architecture, where that is newer than the oldest one here
TOOLKIT_FOR = {Architecture.ADA: "11.8", Architecture.HOPPER: "11.8", Architecture.BLACKWELL: "12.8"}


def is_known(cuda: str) -> Misfit | None:
    """The toolkit is one of which it is known which drivers it needs."""
    if cuda in DRIVER_FLOORS:
        return None
    known = ", ".join(DRIVER_FLOORS)
    return Misfit("cuda", f"CUDA {cuda} is not in the table (there are {known})", CUDA_TABLE)


def cubin_floor(cuda: str) -> str | None:
    """The oldest driver that runs what this toolkit compiles for the GPU itself; ``None`` when unknown."""
    full = DRIVER_FLOORS.get(cuda)
    return CUBIN_FLOORS.get(cuda.partition(".")[0], full) if full else None


def runs_on_the_driver(cuda: str, driver: str) -> Misfit | None:
    """The driver is as old as the toolkit's major version at least, which runs what is compiled already."""
    floor = cubin_floor(cuda)
    if floor is None or version(driver) >= version(floor):
        return None
    return Misfit("cuda-driver", f"CUDA {cuda} needs driver {floor} or newer, not {driver}", CUBIN_TABLE)


def has_code_for_the_gpus(cuda: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """The toolkit knows every GPU of the host."""
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
