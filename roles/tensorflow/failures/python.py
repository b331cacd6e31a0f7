"""Signs about TensorFlow and related packages, read from the names of directories: nothing is imported."""

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

#: packages that install files over tensorflow's own (names as pip normalises them)
SECOND = Pattern(r"tensorflow-(gpu|cpu|rocm|intel)|tf-nightly(-gpu|-cpu)?|intel-tensorflow(-avx512)?")
#: NVIDIA's libraries as wheels; nvidia-ml-py and the like are not CUDA libraries
WHEELS = Pattern(r"nvidia-(cuda-|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvjitlink|nvtx|tensorrt).*")
TOO_NEW = {"numpy": 2, "protobuf": 4}  #: first major version with which TensorFlow 2.9 cannot be imported (measured)
ABSENT = "absent"


def numpy_too_new(ctx: AuditContext) -> Iterator[str]:
    """The environment's NumPy is 2 or later, and the stack pins an earlier one."""
    yield from _too_new(ctx, "numpy")


def protobuf_too_new(ctx: AuditContext) -> Iterator[str]:
    """The environment's protobuf is 4 or later (3.19 and 3.20 are fine), and the stack pins an earlier one."""
    yield from _too_new(ctx, "protobuf")


def other_tensorflow(ctx: AuditContext) -> Iterator[str]:
    """The environment's TensorFlow is not the stack's version, and its Python is one that the stack names."""
    venv = _fit(ctx)
    have = venv.dists.get("tensorflow") if venv else None
    if venv and have and have != ctx.section(TensorflowSection).version:
        yield f"{venv.home}: tensorflow {have}, Python {venv.python}"


def unfit_python(ctx: AuditContext) -> Iterator[str]:
    """At the environment's path is one of a Python that the stack does not name."""
    venv = used(ctx)
    if venv and _fit(ctx) is None and not _no_python(ctx):
        yield f"{venv.home}: Python {venv.python}"


def pins_not_kept(ctx: AuditContext) -> Iterator[str]:
    """A pinned package of the environment is of another version, and no rule of its own tells of it."""
    venv = used(ctx)
    for drift in venv.drifts if venv else ():
        if _version_differs(drift) and not _told(drift):
            yield f"{drift.have} (pinned: {drift.version})"


def damaged(ctx: AuditContext) -> Iterator[str]:
    """The environment lacks a pinned package, a package's file is gone or of another size, or its interpreter is lost
    although the host has a Python that fits.
    """
    venv = used(ctx)
    if venv is None or venv.found is None:
        return
    lost = [] if _no_python(ctx) else venv.found.lost
    yield from (f"{venv.home}: no {file}" for file in lost)
    shared = "tensorflow" if _seconds(venv) else ""
    yield from (drift.have for drift in venv.drifts if not _version_differs(drift) and drift.name != shared)


def second_tensorflow(ctx: AuditContext) -> Iterator[str]:
    """A second package with TensorFlow's files, such as tensorflow-gpu or tf-nightly, is in the environment."""
    venv = _fit(ctx)
    yield from (f"{venv.home}: {package}" for package in _seconds(venv)) if venv else ()


def nvidia_wheels(ctx: AuditContext) -> Iterator[str]:
    """Wheels of CUDA that the stack does not pin are in the environment (nvidia-cudnn-cu11 and the like)."""
    venv = _fit(ctx)
    if venv:
        pins = venv.recipe.pins if venv.recipe else {}
        yield from (f"{venv.home}: {name} {version}" for name, version in sorted(venv.dists.items())
                    if WHEELS.fullmatch(name) and name not in pins)  # fmt: skip


def outside_venv(ctx: AuditContext) -> Iterator[str]:
    """pip has put a TensorFlow into the system's Python or into somebody's ``~/.local``."""
    for place, versions in outside(ctx):
        yield f"{place}: {', '.join(f'{name} {version}' for name, version in versions.items())}"


def no_python(ctx: AuditContext) -> Iterator[str]:
    """None of the host's Pythons is one that the stack names, and the stack brings none."""
    ctx.require(PYTHONS)
    versions, section = pythons(ctx.facts), ctx.section(TensorflowSection)
    if versions and not section.interpreter and not set(versions) & set(section.pythons):
        yield f"the host has Python {', '.join(interpreters(ctx.facts))}"


def no_avx(ctx: AuditContext) -> Iterator[str]:
    """The flags in ``/proc/cpuinfo`` do not name avx."""
    if "avx" in ctx.stack.requirements.cpu_flags and ctx.answer(AVX).status == 1:
        yield "no avx among the flags in /proc/cpuinfo"


def _fit(ctx: AuditContext) -> Used | None:
    """The environment, if its Python is one that the stack names: any other is replaced, whatever is in it."""
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
    """The major version that the stack pins for the environment's Python, or for its first."""
    texts = ctx.section(TensorflowSection).constraints
    python = venv.python if venv and venv.python in texts else next(iter(texts), "")
    return major(Recipe("", python, "", texts.get(python, "")).pins.get(name, ""))


def _version_differs(drift: Drift) -> bool:
    """Whether it is installed in another version, or in two; otherwise it is missing or its files are wrong."""
    name, have = drift.name, drift.have
    twice = f" and {name} " in have
    return twice or not f"{have} ".startswith((f"{name} {drift.version} ", f"{name} {ABSENT} "))


def _told(drift: Drift) -> bool:
    """Whether this package has a rule of its own."""
    first = major(drift.have.rpartition(" ")[2])
    newer = drift.name in TOO_NEW and first is not None and first >= TOO_NEW[drift.name]
    return newer or drift.name == "tensorflow"


def _seconds(venv: Used) -> list[str]:
    return [f"{name} {version}" for name, version in sorted(venv.dists.items()) if SECOND.fullmatch(name)]


PYTHON = (
    FailureRule(
        "tensorflow-other-version",
        "",
        "the environment holds another TensorFlow, which wants another CUDA and cuDNN than the stack's",
        "Provision again: the tensorflow role puts the pinned version back",
        "tensorflow/tensorflow, tested build configurations",
        sign=Sign("tensorflow", other_tensorflow, (VENVS,), provision=True),
    ),
    FailureRule(
        "environment-python",
        "",
        "the environment was made of a Python for which this TensorFlow has no wheel",
        "Provision again where the host has one of the stack's Pythons; what stands there is moved aside",
        "PyPI: tensorflow 2.9.0 has wheels for Python 3.7 to 3.10, 2.21.0 for 3.10 to 3.13",
        sign=Sign("tensorflow", unfit_python, (VENVS,), provision=True),
    ),
    FailureRule(
        "pins-not-kept",
        "",
        "somebody installed packages into the environment without its constraints",
        "Provision again; add packages with pip install -c constraints.txt, the file in the environment",
        "pip, constraints files",
        sign=Sign("tensorflow", pins_not_kept, (VENVS,), grave=False, provision=True),
    ),
    FailureRule(
        "environment-damaged",
        "",
        "files of the environment were deleted or changed since pip put them there",
        "Provision again: the tensorflow role installs those packages again, alone",
        "pip, RECORD files",
        sign=Sign("tensorflow", damaged, (VENVS,), provision=True),
    ),
    FailureRule(
        "second-tensorflow",
        "",
        "two packages share TensorFlow's files, and which one's they are depends on what came last",
        "Take it out (PATH/bin/python -m pip uninstall NAME), then provision again: TensorFlow itself comes back whole",
        "PyPI, tensorflow-gpu",
        sign=Sign("tensorflow", second_tensorflow, (VENVS,)),
        treatment=Tangled("two packages share TensorFlow's files"),
    ),
    FailureRule(
        "nvidia-wheels",
        "",
        "CUDA's libraries are in the environment a second time, and a program that loads those first mixes two cuDNN",
        "Take them out (PATH/bin/python -m pip uninstall NAME); keep frameworks that need them in a venv of their own",
        "PyPI, nvidia-cudnn-cu11",
        sign=Sign("tensorflow", nvidia_wheels, (VENVS,), grave=False),
    ),
    FailureRule(
        "tensorflow-outside",
        "",
        "pip install without a venv brought a TensorFlow of its own; without the stack's pins it takes numpy 2 and"
        " usually does not import",
        "Take it out there (python3 -m pip uninstall tensorflow), and use the stack's: /opt/tensorflow-2.9/bin/python",
        "measured with today's pip",
        sign=Sign("tensorflow", outside_venv, (OUTSIDE,), grave=False),
    ),
)
