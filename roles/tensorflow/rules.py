"""Compatibility rules for TensorFlow: Python, CUDA, cuDNN and GPUs of its wheels, and imported packages.

To support a release, add a row to ``TENSORFLOWS``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from hostwright.resources import ENVIRONMENT_RULES, on_section, read_constraints
from hostwright.roles import Choice, Ground, Misfit, Stack, disk_is_enough, memory_is_enough, series, version
from hostwright.standard.roles.cuda import wheels
from hostwright.standard.roles.cuda.rules import CUBIN_FLOORS, CUDA_TABLE, DRIVER_FLOORS
from hostwright.standard.roles.cuda.wheels import PTX_FLOORS, Codes, capabilities, python_range, usable_pythons
from hostwright.standard.roles.driver.chips import chips
from hostwright.standard.roles.tensorflow.section import TensorflowSection

TF_TABLE = "TensorFlow's tested build configurations (tensorflow.org/install/source)"
FIRST_WITH_WHEELS = "2.14"
BUILD_INFO = "the wheel's build_info"
#: sources of the limit on Blackwell GPUs, where TensorFlow fails with the code that the driver compiles from Hopper's
#: PTX
BLACKWELL = "the wheel's build_info; tensorflow/tensorflow#89272, #99592, #101746, #103531, #111958"


@dataclass(frozen=True, slots=True)
class TensorFlowRow:
    """Row of the compatibility table: a release series of TensorFlow, with tested versions and GPU code of its
    wheels.
    """

    series: str
    release: str
    pythons: tuple[str, ...]
    cuda: str
    cudnn: str
    codes: Codes


#: GPU code in the wheels of TensorFlow 2.5 to 2.12 (build_info of 2.9 to 2.12)
KEPLER = Codes(capabilities("3.5 5.0 6.0 7.0 7.5"), (8, 0))
#: GPU code in the wheels of TensorFlow 2.17 to 2.21 (build_info)
TO_HOPPER = Codes(capabilities("6.0 7.0 8.0 8.9"), (9, 0), (9, 0))

TENSORFLOWS = (
    TensorFlowRow("2.5", "2.5.0", python_range(6, 9), "11.2", "8.1", KEPLER),
    TensorFlowRow("2.6", "2.6.0", python_range(6, 9), "11.2", "8.1", KEPLER),
    TensorFlowRow("2.7", "2.7.0", python_range(7, 9), "11.2", "8.1", KEPLER),
    TensorFlowRow("2.8", "2.8.0", python_range(7, 10), "11.2", "8.1", KEPLER),
    TensorFlowRow("2.9", "2.9.0", python_range(7, 10), "11.2", "8.1", KEPLER),
    TensorFlowRow("2.10", "2.10.0", python_range(7, 10), "11.2", "8.1", KEPLER),
    TensorFlowRow("2.11", "2.11.0", python_range(7, 10), "11.2", "8.1", KEPLER),
    TensorFlowRow("2.12", "2.12.0", python_range(8, 11), "11.8", "8.6", KEPLER),
    TensorFlowRow("2.13", "2.13.1", python_range(8, 11), "11.8", "8.6", Codes(KEPLER.compiled, (8, 0), (9, 0))),
    TensorFlowRow("2.14", "2.14.1", python_range(9, 11), "11.8", "8.7", Codes(KEPLER.compiled, (8, 0), (9, 0))),
    TensorFlowRow(
        "2.15", "2.15.1", python_range(9, 11), "12.2", "8.9", Codes(capabilities("5.0 6.0 7.0 7.5"), (8, 0), (9, 0))
    ),
    TensorFlowRow(
        "2.16", "2.16.2", python_range(9, 12), "12.3", "8.9", Codes(capabilities("5.0 6.0 7.0 8.0"), (9, 0), (9, 0))
    ),
    TensorFlowRow("2.17", "2.17.1", python_range(9, 12), "12.3", "8.9", TO_HOPPER),
    TensorFlowRow("2.18", "2.18.1", python_range(9, 12), "12.5", "9.3", TO_HOPPER),
    TensorFlowRow("2.19", "2.19.1", python_range(9, 12), "12.5", "9.3", TO_HOPPER),
    TensorFlowRow("2.20", "2.20.0", python_range(9, 13), "12.5", "9.3", TO_HOPPER),
    TensorFlowRow("2.21", "2.21.0", python_range(10, 13), "12.5", "9.3", TO_HOPPER),
)

_NUMPY = "wheels built against numpy 1 do not import with numpy 2"
#: package → first version that breaks the import of TensorFlow, with reason and source
IMPORT_LIMITS = {
    "numpy": ("2", _NUMPY, "measured with TensorFlow 2.9.0"),
    "protobuf": (
        "4",
        "generated code of protobuf 3 does not import with protobuf 4 (tensorflow#56266)",
        "measured with TensorFlow 2.9.0",
    ),
}


def _wants(release: str, **limits: str) -> dict[str, tuple[str, str, str]]:
    return {
        name: (
            limit,
            f"TensorFlow's wheel requires {name} below {limit}",
            f"metadata of the wheel of TensorFlow {release}",
        )
        for name, limit in limits.items()
    }


#: TensorFlow series → package limits in place of ``IMPORT_LIMITS``; empty: no limit
LATER_LIMITS = {
    "2.12": _wants("2.12.1", protobuf="5"),
    "2.13": _wants("2.13.1", numpy="1.24.4", protobuf="5"),
    "2.14": _wants("2.14.1", protobuf="5"),
    "2.15": _wants("2.15.1", protobuf="5"),
    "2.16": _wants("2.16.2", protobuf="5"),
    "2.17": _wants("2.17.1", protobuf="5"),
    "2.18": _wants("2.18.1", numpy="2.1", protobuf="6"),
    "2.19": _wants("2.19.1", numpy="2.2", protobuf="6"),
    "2.20": _wants("2.20.0", numpy="", protobuf=""),
    "2.21": _wants("2.21.0", numpy="", protobuf="8"),
}


def row_of(tensorflow: str) -> TensorFlowRow | None:
    """Return the compatibility table's row for the version ``tensorflow``; ``None`` if missing."""
    return next((row for row in TENSORFLOWS if row.series == series(tensorflow)), None)


def is_known(tensorflow: str) -> Misfit | None:
    """Check that the compatibility table lists the series of ``tensorflow``."""
    if row_of(tensorflow):
        return None
    known = f"{TENSORFLOWS[0].series} to {TENSORFLOWS[-1].series}"
    return Misfit(
        "tensorflow", f"TensorFlow {tensorflow} is not in the compatibility table; use a release from {known}", TF_TABLE
    )


def has_a_wheel_for_the_python(tensorflow: str, python: str) -> Misfit | None:
    """Check that TensorFlow has a wheel for the Python version ``python``."""
    row = row_of(tensorflow)
    if row is None or python in row.pythons:
        return None
    have = f"{row.pythons[0]} to {row.pythons[-1]}"
    sentence = f"TensorFlow {tensorflow} has no wheel for Python {python}, only for {have}"
    return Misfit("tensorflow-python", sentence, TF_TABLE)


def is_built_for_the_toolkit(
    tensorflow: str, cuda: str, tensorflow_section: TensorflowSection | None = None
) -> Misfit | None:
    """Check that the wheel was built for the series of the toolkit ``cuda``, unless CUDA comes from wheels."""
    row = row_of(tensorflow)
    if row is None or series(cuda) == row.cuda or _brings_cuda(tensorflow_section):
        return None
    sentence = f"TensorFlow {tensorflow} is built for CUDA {row.cuda}, not for {cuda}"
    return Misfit("tensorflow-cuda", sentence, TF_TABLE)


def is_tested_with_the_cudnn(
    tensorflow: str, cudnn: str, tensorflow_section: TensorflowSection | None = None
) -> Misfit | None:
    """Check that the wheel was tested with the series of ``cudnn``, unless cuDNN comes from a wheel."""
    row = row_of(tensorflow)
    if row is None or series(cudnn) == row.cudnn or _brings_cuda(tensorflow_section):
        return None
    sentence = f"TensorFlow {tensorflow} is tested with cuDNN {row.cudnn}, not with {cudnn}"
    return Misfit("tensorflow-cudnn", sentence, TF_TABLE)


def _brings_cuda(section: TensorflowSection | None) -> bool:
    return section is not None and wheels.brings_cuda(section)


def takes_cuda_as_wheels(tensorflow: str, tensorflow_section: TensorflowSection) -> Misfit | None:
    """Check that this TensorFlow can load CUDA from wheels, if the stack pins such wheels."""
    if not _brings_cuda(tensorflow_section) or version(tensorflow) >= version(FIRST_WITH_WHEELS):
        return None
    sentence = (
        f"tensorflow.constraints pin CUDA wheels, but TensorFlow {tensorflow} loads CUDA only from the "
        f"host; {FIRST_WITH_WHEELS} is the first release that loads CUDA from wheels"
    )
    return Misfit("tensorflow-wheels", sentence, "metadata of the wheels: the extra and-cuda")


def runs_on_the_driver(tensorflow: str, driver: str, tensorflow_section: TensorflowSection) -> Misfit | None:
    """Check that ``driver`` supports the CUDA release of the wheels, if the stack pins CUDA wheels."""
    row = row_of(tensorflow)
    if row is None or not _brings_cuda(tensorflow_section):
        return None
    return wheels.runs_on_the_driver(f"TensorFlow {tensorflow}", row.cuda, driver)


def has_code_for_the_gpus(tensorflow: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """Check that TensorFlow's wheel has compiled code or PTX for every GPU of the host."""
    row = row_of(tensorflow)
    source = BLACKWELL if row and row.codes.newest else BUILD_INFO
    return wheels.has_code(f"TensorFlow {tensorflow}", row.codes if row else KEPLER, gpus, "gpu-tensorflow", source)


def driver_compiles_its_ptx(
    tensorflow: str,
    driver: str,
    gpus: tuple[tuple[int, int], ...],
    tensorflow_section: TensorflowSection | None = None,
    cuda: str = "",
) -> Misfit | None:
    """Check that ``driver`` is as new as the toolkit, if a GPU needs the wheel's PTX."""
    row = row_of(tensorflow)
    toolkit = row.cuda if row and _brings_cuda(tensorflow_section) else cuda
    full, floor = DRIVER_FLOORS.get(toolkit) or PTX_FLOORS.get(toolkit), CUBIN_FLOORS.get(toolkit.partition(".")[0])
    codes = row.codes if row else KEPLER
    chip = next((chip for chip in chips(gpus) if not codes.compiled_for(chip.capability)), None)
    if chip is None or full is None or floor is None or not version(floor) <= version(driver) < version(full):
        return None
    return Misfit(
        "cuda-driver",
        f"on {chip.architecture} ({chip.name}), CUDA {toolkit} needs driver {full} or newer, but the "
        f"stack has {driver}. TensorFlow {tensorflow} has only PTX code for this GPU, which an older "
        "driver cannot compile",
        CUDA_TABLE,
    )


def _on_gpus(tensorflow: str) -> str:
    row = row_of(tensorflow)
    return f"with {(row.codes if row else KEPLER).span}"


def processor_has_avx(avx: bool, stack: Stack) -> Misfit | None:
    """Check that the processor has AVX, if the stack requires AVX."""
    if avx or "avx" not in stack.requirements.cpu_flags:
        return None
    sentence = "the CPU has no AVX, and TensorFlow ends with 'Illegal instruction' without it"
    return Misfit("avx", sentence, "TensorFlow's documentation, since 1.6", "a processor with AVX")


def constraints_keep_its_import(tensorflow_section: TensorflowSection) -> Iterator[Misfit]:
    """Check that all constraints pin the packages whose newer versions break TensorFlow's import."""
    limits = {**IMPORT_LIMITS, **LATER_LIMITS.get(tensorflow_section.series, {})}
    for python in tensorflow_section.usable:
        pins = _pins(tensorflow_section.constraints.get(python, ""))
        for package, (limit, why, source) in limits.items():
            pinned = pins.get(package)
            if limit and (pinned is None or pinned >= Version(limit)):
                have = f"{package} {pinned}" if pinned else f"no exact version of {package}"
                yield Misfit(
                    "tensorflow-constraints",
                    f"tensorflow.constraints for Python {python} has {have}: {why}",
                    source,
                    f"a constraints file for Python {python} with {package}==VERSION below {limit}",
                )


@lru_cache(maxsize=32)  # A plan calls this for each host, and parsing 180 pins takes 10 ms.
def _pins(constraints: str) -> Mapping[str, Version]:
    pins = {}
    for line in read_constraints(constraints).plain.splitlines():
        try:
            requirement = Requirement(line.partition("#")[0])
        except InvalidRequirement:
            continue
        exact = [part.version for part in requirement.specifier if part.operator == "=="]
        if exact and not exact[0].endswith(".*"):
            pins[requirement.name.lower()] = Version(exact[0])
    return pins


RULES = (
    processor_has_avx,
    memory_is_enough,
    disk_is_enough,
    is_known,
    has_a_wheel_for_the_python,
    is_built_for_the_toolkit,
    is_tested_with_the_cudnn,
    takes_cuda_as_wheels,
    runs_on_the_driver,
    driver_compiles_its_ptx,
    has_code_for_the_gpus,
    constraints_keep_its_import,
    *(on_section("tensorflow", rule) for rule in (*ENVIRONMENT_RULES, wheels.one_cuda)),
)
CHOICES = (
    Choice("tensorflow", "TensorFlow", 10, tuple(row.release for row in TENSORFLOWS), usual="2.9.0"),
    Choice("python", "Python", 20, python_range(6, 13), usual="3.8", wanted=usable_pythons),
)
GROUNDS = (Ground("gpus", _on_gpus),)
