"""Signs of faulty TensorFlow environments, read from directory names; no Python module is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, Tangled
from hostwright.resources import AVX, PYTHONS, Drift, Recipe, interpreters, pythons
from hostwright.roles import Pattern
from hostwright.standard.roles.tensorflow.failures.state import OUTSIDE, VENVS, Used, major, outside, used
from hostwright.standard.roles.tensorflow.section import TensorflowSection

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: packages that overwrite files of the package ``tensorflow``
SECOND = Pattern(r"tensorflow-(gpu|cpu|rocm|intel)|tf-nightly(-gpu|-cpu)?|intel-tensorflow(-avx512)?")
#: pattern of NVIDIA's wheels with CUDA libraries
WHEELS = Pattern(r"nvidia-(cuda-|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvjitlink|nvtx|tensorrt).*")
#: package → first major version that breaks the import of TensorFlow 2.9 (measured)
TOO_NEW = {"numpy": 2, "protobuf": 4}
ABSENT = "absent"


def numpy_too_new(ctx: AuditContext) -> Iterator[str]:
    """The environment's NumPy is 2 or later, but the stack pins an earlier version."""
    yield from _too_new(ctx, "numpy")


def protobuf_too_new(ctx: AuditContext) -> Iterator[str]:
    """The environment's protobuf is 4 or later (3.19 and 3.20 work), but the stack pins an earlier version."""
    yield from _too_new(ctx, "protobuf")


def other_tensorflow(ctx: AuditContext) -> Iterator[str]:
    """The environment has one of the stack's Python versions, but another TensorFlow than the stack."""
    venv = _fit(ctx)
    have = venv.dists.get("tensorflow") if venv else None
    if venv and have and have != ctx.section(TensorflowSection).version:
        yield f"{venv.home}: tensorflow {have}, Python {venv.python}"


def unfit_python(ctx: AuditContext) -> Iterator[str]:
    """The environment at the stack's path has a Python version that is not in the stack."""
    venv = used(ctx)
    if venv and _fit(ctx) is None and not _no_python(ctx):
        yield f"{venv.home}: Python {venv.python}"


def pins_not_kept(ctx: AuditContext) -> Iterator[str]:
    """A pinned package of the environment has another version than the pin, and no other rule covers the package."""
    venv = used(ctx)
    for drift in venv.drifts if venv else ():
        if _version_differs(drift) and not _told(drift):
            yield f"{drift.have} (pinned: {drift.version})"


def damaged(ctx: AuditContext) -> Iterator[str]:
    """The environment lacks a pinned package, a package's file is missing or has another size, or its interpreter is
    missing.
    """
    venv = used(ctx)
    if venv is None or venv.found is None:
        return
    lost = [] if _no_python(ctx) else venv.found.lost
    yield from (f"{venv.home}: no {file}" for file in lost)
    shared = "tensorflow" if _seconds(venv) else ""
    yield from (drift.have for drift in venv.drifts if not _version_differs(drift) and drift.name != shared)


def second_tensorflow(ctx: AuditContext) -> Iterator[str]:
    """The environment has a second package with TensorFlow's files, such as tensorflow-gpu or tf-nightly."""
    venv = _fit(ctx)
    yield from (f"{venv.home}: {package}" for package in _seconds(venv)) if venv else ()


def nvidia_wheels(ctx: AuditContext) -> Iterator[str]:
    """The environment has CUDA wheels that the stack does not pin (nvidia-cudnn-cu11 and similar packages)."""
    venv = _fit(ctx)
    if venv:
        pins = venv.recipe.pins if venv.recipe else {}
        yield from (f"{venv.home}: {name} {version}" for name, version in sorted(venv.dists.items())
                    if WHEELS.fullmatch(name) and name not in pins)  # fmt: skip


def outside_venv(ctx: AuditContext) -> Iterator[str]:
    """pip installed a TensorFlow into the system's Python or into a user's ``~/.local``."""
    for place, versions in outside(ctx):
        yield f"{place}: {', '.join(f'{name} {version}' for name, version in versions.items())}"


def no_python(ctx: AuditContext) -> Iterator[str]:
    """The host has none of the stack's Python versions, and the stack does not install one."""
    ctx.require(PYTHONS)
    versions, section = pythons(ctx.facts), ctx.section(TensorflowSection)
    if versions and not section.interpreter and not set(versions) & set(section.pythons):
        yield f"the host has Python {', '.join(interpreters(ctx.facts))}"


def no_avx(ctx: AuditContext) -> Iterator[str]:
    """The CPU flags in ``/proc/cpuinfo`` do not include avx."""
    if "avx" in ctx.stack.requirements.cpu_flags and ctx.answer(AVX).status == 1:
        yield "no avx among the flags in /proc/cpuinfo"


def _fit(ctx: AuditContext) -> Used | None:
    venv = used(ctx)
    return venv if venv and venv.python in ctx.section(TensorflowSection).usable else None


def _no_python(ctx: AuditContext) -> bool:
    return any(True for _ in no_python(ctx))


def _too_new(ctx: AuditContext, name: str) -> Iterator[str]:
    venv = _fit(ctx)
    have = venv.dists.get(name, "") if venv else ""
    first, wanted = major(have), _pinned(ctx, venv, name)
    if venv and first is not None and first >= TOO_NEW[name] and wanted is not None and wanted < TOO_NEW[name]:
        yield f"{venv.home}: {name} {have}"


def _pinned(ctx: AuditContext, venv: Used | None, name: str) -> int | None:
    texts = ctx.section(TensorflowSection).constraints
    python = venv.python if venv and venv.python in texts else next(iter(texts), "")
    return major(Recipe("", python, "", texts.get(python, "")).pins.get(name, ""))


def _version_differs(drift: Drift) -> bool:
    name, have = drift.name, drift.have
    twice = f" and {name} " in have
    return twice or not f"{have} ".startswith((f"{name} {drift.version} ", f"{name} {ABSENT} "))


def _told(drift: Drift) -> bool:
    first = major(drift.have.rpartition(" ")[2])
    newer = drift.name in TOO_NEW and first is not None and first >= TOO_NEW[drift.name]
    return newer or drift.name == "tensorflow"


def _seconds(venv: Used) -> list[str]:
    return [f"{name} {version}" for name, version in sorted(venv.dists.items()) if SECOND.fullmatch(name)]


PYTHON = (
    FailureRule(
        "tensorflow-other-version",
        "",
        "the environment has another TensorFlow, which needs another CUDA and cuDNN than the stack's",
        "Provision again: the tensorflow role reinstalls the pinned version",
        "tensorflow/tensorflow, tested build configurations",
        sign=Sign("tensorflow", other_tensorflow, (VENVS,), provision=True),
    ),
    FailureRule(
        "environment-python",
        "",
        "the environment was created with a Python for which this TensorFlow has no wheel",
        "If the host has one of the stack's Pythons, provision again: the old environment is moved aside",
        "PyPI: tensorflow 2.9.0 has wheels for Python 3.7 to 3.10, 2.21.0 for 3.10 to 3.13",
        sign=Sign("tensorflow", unfit_python, (VENVS,), provision=True),
    ),
    FailureRule(
        "pins-not-kept",
        "",
        "packages were installed into the environment without its constraints",
        "Provision again. Add packages with pip install -c constraints.txt, a file in the environment",
        "pip, constraints files",
        sign=Sign("tensorflow", pins_not_kept, (VENVS,), grave=False, provision=True),
    ),
    FailureRule(
        "environment-damaged",
        "",
        "files of the environment were deleted or changed after their installation",
        "Provision again: the tensorflow role reinstalls only those packages",
        "pip, RECORD files",
        sign=Sign("tensorflow", damaged, (VENVS,), provision=True),
    ),
    FailureRule(
        "second-tensorflow",
        "",
        "two packages write TensorFlow's files, and the last installation overwrote the other's",
        "Uninstall the second package (PATH/bin/python -m pip uninstall NAME), then provision again",
        "PyPI, tensorflow-gpu",
        sign=Sign("tensorflow", second_tensorflow, (VENVS,)),
        treatment=Tangled("two packages share TensorFlow's files"),
    ),
    FailureRule(
        "nvidia-wheels",
        "",
        "the environment has a second copy of CUDA's libraries, so that programs can load two cuDNN releases",
        "Uninstall them (PATH/bin/python -m pip uninstall NAME). Install frameworks that need them in a separate venv",
        "PyPI, nvidia-cudnn-cu11",
        sign=Sign("tensorflow", nvidia_wheels, (VENVS,), grave=False),
    ),
    FailureRule(
        "tensorflow-outside",
        "",
        "a pip install outside a venv installed another TensorFlow. Without the stack's pins, it gets numpy 2 and"
        " usually cannot be imported",
        "Uninstall it (python3 -m pip uninstall tensorflow), and use the stack's /opt/tensorflow-2.9/bin/python",
        "measured with today's pip",
        sign=Sign("tensorflow", outside_venv, (OUTSIDE,), grave=False),
    ),
)
