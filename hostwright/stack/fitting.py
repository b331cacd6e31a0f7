"""The rules over the tables of ``hostwright.stack.compatibility``, and the nearest combination that breaks none.

Nothing here knows a stack or a host; ``hostwright.stack.rules`` asks with their versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache

from packaging.specifiers import SpecifierSet

from hostwright.stack.compatibility import (
    COMPILED_CAPABILITY,
    CUBIN_FLOORS,
    CUBIN_TABLE,
    CUDA_TABLE,
    CUDNNS,
    DRIVER_FLOORS,
    DRIVERS,
    MINIMUM_CAPABILITY,
    TENSORFLOWS,
    TF_TABLE,
    TOOLKIT_FOR,
    gpus_of,
    kernel_version,
    series,
    tensorflow_row,
    version,
)
from hostwright.stack.gpus import Architecture, Chip


@dataclass(frozen=True, slots=True)
class Combination:
    """One version of everything whose versions must fit."""

    tensorflow: str
    python: str
    cuda: str
    cudnn: str
    driver: str

    def __str__(self) -> str:
        return ", ".join(f"{TITLES[part.name]} {getattr(self, part.name)}" for part in fields(self))


TITLES = {"tensorflow": "TensorFlow", "python": "Python", "cuda": "CUDA", "cudnn": "cuDNN", "driver": "driver"}

#: what this project is made for: of equally near combinations, the one closest to it is suggested
HOUSE = Combination("2.9.0", "3.8", "11.2.2", "8.1.0.77", "470.182.03")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a combination stands on: a host's kernel and GPUs, where known.

    ``kernels`` overrides the table for a driver version, as a stack may state for its own build.
    """

    kernel: str | None = None
    chips: tuple[Chip, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Misfit:
    """A rule that a combination, or a host with it, breaks: its name, what is wrong, who says so, and what would work.

    ``nearest`` is empty as long as nobody has looked for it.
    """

    rule: str
    sentence: str
    source: str
    nearest: str = ""

    def __str__(self) -> str:
        works = f"; what works: {self.nearest}" if self.nearest else ""
        return f"{self.sentence} [{self.rule}: {self.source}]{works}"


Rule = Callable[[Combination, Ground], Misfit | None]


def kernels_of(driver: str, ground: Ground) -> str | None:
    """The kernels that a driver's module builds on, as conditions on a version; ``None`` when unknown."""
    known = next((row.kernels for row in DRIVERS if row.version == driver), None)
    return ground.kernels.get(driver, known)


def _tensorflow_known(one: Combination, _: Ground) -> Misfit | None:
    if tensorflow_row(one.tensorflow):
        return None
    known = f"{TENSORFLOWS[0].series} to {TENSORFLOWS[-1].series}"
    return Misfit("tensorflow", f"TensorFlow {one.tensorflow} is not in the table ({known} are)", TF_TABLE)


def _python(one: Combination, _: Ground) -> Misfit | None:
    row = tensorflow_row(one.tensorflow)
    if row is None or one.python in row.pythons:
        return None
    have = f"{row.pythons[0]} to {row.pythons[-1]}"
    return Misfit(
        "tensorflow-python",
        f"TensorFlow {one.tensorflow} has no wheel for Python {one.python} (it has for {have})",
        TF_TABLE,
    )


def _cuda(one: Combination, _: Ground) -> Misfit | None:
    row = tensorflow_row(one.tensorflow)
    if row is None or series(one.cuda) == row.cuda:
        return None
    return Misfit(
        "tensorflow-cuda",
        f"TensorFlow {one.tensorflow} is built for CUDA {row.cuda}, not for {one.cuda}",
        TF_TABLE,
    )


def _cudnn(one: Combination, _: Ground) -> Misfit | None:
    row = tensorflow_row(one.tensorflow)
    if row is None or series(one.cudnn) == row.cudnn:
        return None
    return Misfit(
        "tensorflow-cudnn",
        f"TensorFlow {one.tensorflow} is tested with cuDNN {row.cudnn}, not with {one.cudnn}",
        TF_TABLE,
    )


def _driver_floor(one: Combination, ground: Ground) -> Misfit | None:
    """A driver as old as the toolkit's major version runs what is compiled; PTX takes one as new as the toolkit."""
    full = DRIVER_FLOORS.get(one.cuda)
    if full is None:
        known = ", ".join(DRIVER_FLOORS)
        return Misfit("cuda", f"CUDA {one.cuda} is not in the table (there are {known})", CUDA_TABLE)
    if version(one.driver) >= version(full):
        return None
    floor = CUBIN_FLOORS.get(one.cuda.partition(".")[0], full)
    if version(one.driver) < version(floor):
        return Misfit("cuda-driver", f"CUDA {one.cuda} needs driver {floor} or newer, not {one.driver}", CUBIN_TABLE)
    chip = next((chip for chip in ground.chips if chip.capability > COMPILED_CAPABILITY), None)
    if chip is None:
        return None
    return Misfit(
        "cuda-driver",
        f"on {chip.architecture} ({chip.name}) CUDA {one.cuda} needs driver {full} or newer, not {one.driver}: "
        f"TensorFlow {one.tensorflow} has only PTX for it, and an older driver cannot compile the PTX of this toolkit",
        CUDA_TABLE,
    )


def _gpu_driver(one: Combination, ground: Ground) -> Misfit | None:
    driven = gpus_of(one.driver)
    for chip in ground.chips:
        if driven and not driven[0] <= chip.architecture <= driven[1]:
            return Misfit(
                "gpu-driver",
                f"driver {one.driver} drives GPUs from {driven[0]} to {driven[1]}, and this is {chip.architecture} "
                f"({chip.name})",
                "NVIDIA's lists of supported GPUs by driver branch",
            )
    return None


def _gpu_cuda(one: Combination, ground: Ground) -> Misfit | None:
    for chip in ground.chips:
        first = TOOLKIT_FOR.get(chip.architecture)
        if first and version(one.cuda) < version(first):
            return Misfit(
                "gpu-cuda",
                f"{chip.architecture} GPUs ({chip.name}) need CUDA {first} or newer, not {one.cuda}",
                "CUDA release notes: new architectures",
            )
    return None


def _gpu_tensorflow(one: Combination, ground: Ground) -> Misfit | None:
    for chip in ground.chips:
        if chip.capability < MINIMUM_CAPABILITY:
            capability = ".".join(map(str, chip.capability))
            return Misfit(
                "gpu-tensorflow",
                f"TensorFlow {one.tensorflow} has code for compute capability 3.5 and up, and {chip.name} "
                f"has {capability}",
                "the wheel's build_info",
            )
    return None


def _kernel(one: Combination, ground: Ground) -> Misfit | None:
    running = kernel_version(ground.kernel) if ground.kernel else None
    kernels = kernels_of(one.driver, ground)
    if running is None or kernels is None or SpecifierSet(kernels).contains(running):
        return None
    row = next((row for row in DRIVERS if row.version == one.driver), None)
    return Misfit(
        "driver-kernel",
        f"the module of driver {one.driver} builds on kernels {kernels}, not on {ground.kernel}",
        row.source if row and one.driver not in ground.kernels else "driver.kernels of the stack",
    )


RULES: tuple[Rule, ...] = (
    _tensorflow_known, _python, _cuda, _cudnn, _driver_floor, _gpu_driver, _gpu_cuda, _gpu_tensorflow, _kernel,
)  # fmt: skip


def misfits(one: Combination, ground: Ground) -> Iterator[Misfit]:
    """Every rule that the combination breaks on this ground."""
    return (misfit for rule in RULES if (misfit := rule(one, ground)) is not None)


def nearest_fit(wanted: Combination, ground: Ground) -> str:
    """A sentence that names the combination closest to ``wanted`` that works on this ground.

    When none does, the ground has to change: first the kernel, then the GPU.
    """
    return _nearest_fit(wanted, ground.kernel, ground.chips, tuple(sorted(ground.kernels.items())))


@lru_cache(maxsize=256)  # a fleet has few kinds of hosts, and to go through all combinations takes 5 ms
def _nearest_fit(
    wanted: Combination, kernel: str | None, chips: tuple[Chip, ...], kernels: tuple[tuple[str, str], ...]
) -> str:
    ground = Ground(kernel, chips, dict(kernels))
    best = _best(wanted, ground)
    if best:
        return _said(wanted, best)
    best = _best(wanted, replace(ground, kernel=None))
    if best:
        return f"{_said(wanted, best)}, on a kernel {kernels_of(best.driver, ground)}"
    best = _best(wanted, Ground())
    if best is None:
        return "no combination in the table"
    oldest, newest = gpus_of(best.driver) or (Architecture.KEPLER, Architecture.AMPERE)
    return f"{_said(wanted, best)}, on GPUs from {oldest} to {newest}"


def _said(wanted: Combination, best: Combination) -> str:
    changed = [part.name for part in fields(wanted) if getattr(wanted, part.name) != getattr(best, part.name)]
    if not changed:
        return str(best)
    news = ", ".join(f"{TITLES[name]} {getattr(best, name)} instead of {getattr(wanted, name)}" for name in changed)
    rest = ", ".join(
        f"{TITLES[part.name]} {getattr(best, part.name)}" for part in fields(best) if part.name not in changed
    )
    return f"{news} (with {rest})" if rest else news


def _best(wanted: Combination, ground: Ground) -> Combination | None:
    fitting = (one for one in _candidates(wanted) if next(misfits(one, ground), None) is None)
    return min(fitting, key=lambda one: _distance(wanted, one), default=None)


def _candidates(wanted: Combination) -> Iterator[Combination]:
    """All combinations of the tables' versions and the wanted ones, but for those that a row contradicts."""
    drivers = {*(row.version for row in DRIVERS), wanted.driver}
    for row in TENSORFLOWS:
        tensorflow = wanted.tensorflow if series(wanted.tensorflow) == row.series else row.release
        toolkits = {one for one in (*DRIVER_FLOORS, wanted.cuda) if series(one) == row.cuda}
        cudnns = {one for one in (*CUDNNS, wanted.cudnn) if series(one) == row.cudnn}
        yield from (
            Combination(tensorflow, python, cuda, cudnn, driver)
            for python in row.pythons
            for cuda in toolkits
            for cudnn in cudnns
            for driver in drivers
        )


def _distance(wanted: Combination, one: Combination) -> tuple[object, ...]:
    """Fewest components changed; then fewest of these unlike the house's; then the smallest steps."""
    changed = [part.name for part in fields(one) if getattr(one, part.name) != getattr(wanted, part.name)]
    strange = [name for name in changed if getattr(one, name) != getattr(HOUSE, name)]
    steps = [_step(getattr(wanted, name), getattr(one, name)) for name in changed]
    return len(changed), len(strange), steps, str(one)


def _step(before: str, after: str) -> tuple[int, ...]:
    pairs = zip(version(before).release, version(after).release, strict=False)
    return tuple(abs(old - new) for old, new in pairs)
