"""Compatibility rules for TensorFlow: the Python versions, CUDA, cuDNN and GPUs that its wheels were built for, and the
packages that they import.

To teach Hostwright a new release, add a row: every refusal and every suggestion is computed from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from hostwright.roles import Choice, Misfit, Stack, disk_is_enough, memory_is_enough, series, version
from hostwright.standard.roles.cuda.rules import CUDA_TABLE, DRIVER_FLOORS, cubin_floor
from hostwright.standard.roles.driver.chips import chips
from hostwright.standard.roles.tensorflow.section import TensorflowSection

TF_TABLE = "TensorFlow's tested build configurations (tensorflow.org/install/source)"


@dataclass(frozen=True, slots=True)
class TensorFlowRow:
    """A release series, and the versions that its wheels were built and tested with."""

    series: str
    release: str
    pythons: tuple[str, ...]
    cuda: str
    cudnn: str


def _pythons(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"3.{minor}" for minor in range(first, last + 1))


TENSORFLOWS = (
    TensorFlowRow("2.5", "2.5.0", _pythons(6, 9), "11.2", "8.1"),
    TensorFlowRow("2.6", "2.6.0", _pythons(6, 9), "11.2", "8.1"),
    TensorFlowRow("2.7", "2.7.0", _pythons(7, 9), "11.2", "8.1"),
    TensorFlowRow("2.8", "2.8.0", _pythons(7, 10), "11.2", "8.1"),
    TensorFlowRow("2.9", "2.9.0", _pythons(7, 10), "11.2", "8.1"),
    TensorFlowRow("2.10", "2.10.0", _pythons(7, 10), "11.2", "8.1"),
    TensorFlowRow("2.11", "2.11.0", _pythons(7, 10), "11.2", "8.1"),
    TensorFlowRow("2.12", "2.12.0", _pythons(8, 11), "11.8", "8.6"),
)

#: the GPUs that TensorFlow's wheels have code for, read from the build_info of 2.9.0, 2.9.3, 2.10.1, 2.11.1 and 2.12.1:
#: sm_35 to sm_75 compiled, and compute_80 as PTX, which the driver compiles for Ampere and later
MINIMUM_CAPABILITY = (3, 5)
COMPILED_CAPABILITY = (7, 5)

#: package → the first version with which TensorFlow's wheels of these years cannot be imported, why, and the source
IMPORT_LIMITS = {
    "numpy": ("2", "wheels built against numpy 1 do not import with numpy 2", "measured with TensorFlow 2.9.0"),
    "protobuf": (
        "4",
        "generated code of protobuf 3 does not import with protobuf 4 (tensorflow#56266)",
        "measured with TensorFlow 2.9.0",
    ),
}
#: the same for the wheels of later series, if they differ
LATER_LIMITS = {
    "2.12": {"protobuf": ("5", "its wheel wants protobuf below 5", "metadata of the wheel of TensorFlow 2.12.1")},
}


def row_of(tensorflow: str) -> TensorFlowRow | None:
    """The table's row for a TensorFlow version."""
    return next((row for row in TENSORFLOWS if row.series == series(tensorflow)), None)


def is_known(tensorflow: str) -> Misfit | None:
    """It is known what this series of TensorFlow was built with."""
    if row_of(tensorflow):
        return None
    known = f"{TENSORFLOWS[0].series} to {TENSORFLOWS[-1].series}"
    return Misfit("tensorflow", f"TensorFlow {tensorflow} is not in the table ({known} are)", TF_TABLE)


def has_a_wheel_for_the_python(tensorflow: str, python: str) -> Misfit | None:
    """TensorFlow has a wheel for the Python version."""
    row = row_of(tensorflow)
    if row is None or python in row.pythons:
        return None
    have = f"{row.pythons[0]} to {row.pythons[-1]}"
    sentence = f"TensorFlow {tensorflow} has no wheel for Python {python} (it has for {have})"
    return Misfit("tensorflow-python", sentence, TF_TABLE)


def is_built_for_the_toolkit(tensorflow: str, cuda: str) -> Misfit | None:
    """The wheel was built for the toolkit's series."""
    row = row_of(tensorflow)
    if row is None or series(cuda) == row.cuda:
        return None
    sentence = f"TensorFlow {tensorflow} is built for CUDA {row.cuda}, not for {cuda}"
    return Misfit("tensorflow-cuda", sentence, TF_TABLE)


def is_tested_with_the_cudnn(tensorflow: str, cudnn: str) -> Misfit | None:
    """The wheel was tested with cuDNN's series."""
    row = row_of(tensorflow)
    if row is None or series(cudnn) == row.cudnn:
        return None
    sentence = f"TensorFlow {tensorflow} is tested with cuDNN {row.cudnn}, not with {cudnn}"
    return Misfit("tensorflow-cudnn", sentence, TF_TABLE)


def has_code_for_the_gpus(tensorflow: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """The wheel has code, compiled or as PTX, for every GPU of the host."""
    for chip in chips(gpus):
        if chip.capability < MINIMUM_CAPABILITY:
            capability = ".".join(map(str, chip.capability))
            return Misfit(
                "gpu-tensorflow",
                f"TensorFlow {tensorflow} has code for compute capability 3.5 and up, and {chip.name} has {capability}",
                "the wheel's build_info",
            )
    return None


def driver_compiles_its_ptx(
    tensorflow: str, cuda: str, driver: str, gpus: tuple[tuple[int, int], ...]
) -> Misfit | None:
    """Compiled code runs with any driver for the toolkit's major version; PTX needs a driver as new as the toolkit."""
    full, floor = DRIVER_FLOORS.get(cuda), cubin_floor(cuda)
    chip = next((chip for chip in chips(gpus) if chip.capability > COMPILED_CAPABILITY), None)
    if chip is None or full is None or floor is None or not version(floor) <= version(driver) < version(full):
        return None
    return Misfit(
        "cuda-driver",
        f"on {chip.architecture} ({chip.name}) CUDA {cuda} needs driver {full} or newer, not {driver}: "
        f"TensorFlow {tensorflow} has only PTX for it, and an older driver cannot compile the PTX of this toolkit",
        CUDA_TABLE,
    )


def processor_has_avx(avx: bool, stack: Stack) -> Misfit | None:
    """The processor has AVX, if the stack says that its wheels need it."""
    if avx or "avx" not in stack.requirements.cpu_flags:
        return None
    sentence = "the processor has no AVX, without which TensorFlow ends with 'Illegal instruction'"
    return Misfit("avx", sentence, "TensorFlow's documentation, since 1.6", "a processor with AVX")


def host_has_a_python(
    pythons: tuple[str, ...], tensorflow_section: TensorflowSection, interpreters: tuple[str, ...] = ()
) -> Misfit | None:
    """The host has a Python that the stack supports, or the stack brings one. On a host without any Python, the role
    installs it."""
    usable = sorted(tensorflow_section.pythons, key=Version)
    if tensorflow_section.interpreter or set(usable) & set(pythons):
        return None
    have = f"the host has Python {', '.join(interpreters or pythons)} only"
    return Misfit(
        "host-python",
        f"{have}, and TensorFlow {tensorflow_section.version} has wheels for {', '.join(usable)}",
        "tensorflow.pythons of the stack",
        f"Python {usable[-1]} installed beside it, a stack that brings one (tensorflow.interpreter), "
        "or a distribution that has one of these",
    )


def constraints_keep_its_import(tensorflow_section: TensorflowSection) -> Iterator[Misfit]:
    """The constraints of every Python pin the packages whose newer versions break TensorFlow's import."""
    limits = {**IMPORT_LIMITS, **LATER_LIMITS.get(tensorflow_section.series, {})}
    for python in tensorflow_section.usable:
        pins = _pins(tensorflow_section.constraints.get(python, ""))
        for package, (limit, why, source) in limits.items():
            pinned = pins.get(package)
            if pinned is None or pinned >= Version(limit):
                have = f"{package} {pinned}" if pinned else f"no exact version of {package}"
                yield Misfit(
                    "tensorflow-constraints",
                    f"tensorflow.constraints for Python {python} gives {have}: {why}",
                    source,
                    f"a constraints file for Python {python} with {package}==VERSION below {limit}",
                )


@lru_cache(maxsize=32)  # the rules are evaluated for a stack and for each host; a file with 180 pins takes 10 ms
def _pins(constraints: str) -> Mapping[str, Version]:
    """The packages that a constraints file pins with ``==``."""
    pins = {}
    for line in constraints.splitlines():
        try:
            requirement = Requirement(line.partition("#")[0])
        except InvalidRequirement:
            continue
        exact = [part.version for part in requirement.specifier if part.operator == "=="]
        if exact and not exact[0].endswith(".*"):
            pins[requirement.name.lower()] = Version(exact[0])
    return pins


def _chosen_pythons(section: TensorflowSection) -> tuple[str, ...]:
    return section.usable


RULES = (
    processor_has_avx,
    memory_is_enough,  # to import it
    disk_is_enough,
    host_has_a_python,
    is_known,
    has_a_wheel_for_the_python,
    is_built_for_the_toolkit,
    is_tested_with_the_cudnn,
    driver_compiles_its_ptx,
    has_code_for_the_gpus,
    constraints_keep_its_import,
)
CHOICES = (
    Choice("tensorflow", "TensorFlow", 10, tuple(row.release for row in TENSORFLOWS), usual="2.9.0"),
    Choice("python", "Python", 20, _pythons(6, 11), usual="3.8", wanted=_chosen_pythons),
)
