"""Compatibility rules for the CUDA toolkit: drivers that run its compiled code, and GPUs that it supports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hostwright.roles import Choice, Misfit, disk_is_enough, series, version
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.driver.chips import Architecture, chips

CUDA_TABLE = "CUDA release notes, table of toolkits and drivers"

#: toolkit release → oldest driver that supports all of the toolkit, including PTX
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
    "12.0.0": "525.60.13",
    "12.2.2": "535.104.05",
    "12.3.2": "545.23.08",
    "12.4.1": "550.54.15",
    "12.5.1": "555.42.06",
    "12.6.3": "560.35.05",
    "12.8.1": "570.124.06",
    "12.9.1": "575.57.08",
    "13.0.0": "580.65.06",
    "13.0.2": "580.95.05",
    "13.1.1": "590.48.01",
    "13.2.1": "595.58.03",
    "13.3.0": "610.43.02",
}

#: major version of a toolkit → oldest driver that runs the toolkit's compiled GPU code (cubins)
CUBIN_FLOORS = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}
CUBIN_TABLE = "CUDA compatibility guide, minor-version compatibility (docs.nvidia.com/deploy/cuda-compatibility)"

#: toolkit series → newest gcc that nvcc accepts (nvcc's crt/host_config.h; Spack's build_systems/cuda.py)
GCC_BY_SERIES = {
    "11.2": 10, "11.4": 11, "11.8": 11,
    "12.0": 12, "12.1": 12, "12.2": 12, "12.3": 12,
    "12.4": 13, "12.5": 13, "12.6": 13, "12.8": 14, "12.9": 14,
    "13.0": 15, "13.1": 15, "13.2": 15, "13.3": 15, "13.4": 16, "13.5": 16,
}  # fmt: skip
#: toolkit release → newest gcc that nvcc accepts, where the toolkit series has another limit
_GCC_OF_ONE = {"11.4.0": 10}

#: compute capability → first toolkit series that compiles for it. Capabilities that all listed series support are
#: omitted.
TOOLKIT_FOR = {
    (8, 9): "11.8",
    (9, 0): "11.8",
    (10, 0): "12.8",
    (10, 3): "12.9",
    (12, 0): "12.8",
    (12, 1): "12.9",
}
#: GPU architecture → last toolkit series that compiles for it
LAST_TOOLKIT = {
    Architecture.KEPLER: "11.8",
    Architecture.MAXWELL: "12.9",
    Architecture.PASCAL: "12.9",
    Architecture.VOLTA: "12.9",
}
ARCHITECTURES = "CUDA toolkit, driver and architecture matrix (docs.nvidia.com)"


def newest_gcc(cuda: str) -> int | None:
    """Return the newest gcc that nvcc of the toolkit ``cuda`` accepts; ``None`` if unknown."""
    return _GCC_OF_ONE.get(cuda) or GCC_BY_SERIES.get(series(cuda))


def is_known(cuda: str) -> Misfit | None:
    """Check that the compatibility table lists the driver that the toolkit ``cuda`` needs."""
    if cuda in DRIVER_FLOORS:
        return None
    known = ", ".join(DRIVER_FLOORS)
    return Misfit("cuda", f"CUDA {cuda} is not in the compatibility table; use one of {known}", CUDA_TABLE)


def cubin_floor(cuda: str) -> str | None:
    """Return the oldest driver that runs GPU code compiled by the toolkit ``cuda``; ``None`` if unknown."""
    full = DRIVER_FLOORS.get(cuda)
    return CUBIN_FLOORS.get(cuda.partition(".")[0], full) if full else None


def runs_on_the_driver(cuda: str, driver: str) -> Misfit | None:
    """Check that ``driver`` runs compiled code of the toolkit's major version. PTX may need a newer driver."""
    floor = cubin_floor(cuda)
    if floor is None or version(driver) >= version(floor):
        return None
    return Misfit("cuda-driver", f"CUDA {cuda} needs driver {floor} or newer, but the stack has {driver}", CUBIN_TABLE)


def has_code_for_the_gpus(cuda: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """Check that the toolkit ``cuda`` can compile code for every GPU of the host (compute capabilities ``gpus``)."""
    for chip in chips(gpus):
        first, last = TOOLKIT_FOR.get(chip.capability), LAST_TOOLKIT.get(chip.architecture)
        named = f"{chip.architecture} GPUs ({chip.name})"
        if first and version(cuda) < version(first):
            return Misfit("gpu-cuda", f"{named} need CUDA {first} or newer, but the stack has {cuda}", ARCHITECTURES)
        if last and version(series(cuda)) > version(last):
            sentence = f"CUDA {last} is the last release with code for {named}, but the stack has CUDA {cuda}"
            return Misfit("gpu-cuda", sentence, ARCHITECTURES)
    return None


def those_beside_it_are_known(cuda_section: CudaSection) -> Iterator[Misfit]:
    """Check that the compatibility table lists the drivers for each additional toolkit (``cuda.beside``)."""
    for name, one in cuda_section.beside.items():
        if misfit := is_known(one.version):
            yield replace(misfit, nearest=f"one of these as cuda.beside.{name}")


def those_beside_it_run(cuda_section: CudaSection, driver: str) -> Iterator[Misfit]:
    """Check that ``driver`` is new enough for each additional toolkit (``cuda.beside``)."""
    yield from filter(None, (runs_on_the_driver(one.version, driver) for one in cuda_section.beside.values()))


def those_beside_it_have_code(cuda_section: CudaSection, gpus: tuple[tuple[int, int], ...]) -> Iterator[Misfit]:
    """Check that each additional toolkit (``cuda.beside``) has code for every GPU of the host."""
    for name, one in cuda_section.beside.items():
        if misfit := has_code_for_the_gpus(one.version, gpus):
            nearest = _nearest_with_code(one.version, gpus)
            instead = f"CUDA {nearest} as cuda.beside.{name}, or null" if nearest else f"null as cuda.beside.{name}"
            yield replace(misfit, nearest=instead)


def _nearest_with_code(cuda: str, gpus: tuple[tuple[int, int], ...]) -> str:
    def steps(release: str) -> tuple[int, ...]:
        pairs = zip(version(release).release, version(cuda).release, strict=False)
        return tuple(abs(one - two) for one, two in pairs)

    fitting = [release for release in DRIVER_FLOORS if has_code_for_the_gpus(release, gpus) is None]
    return min(fitting, key=steps, default="")


RULES = (
    disk_is_enough,
    is_known,
    runs_on_the_driver,
    has_code_for_the_gpus,
    those_beside_it_are_known,
    those_beside_it_run,
    those_beside_it_have_code,
)
CHOICES = (Choice("cuda", "CUDA", 30, tuple(DRIVER_FLOORS), usual="11.2.2"),)
