"""Compatibility rules for PyTorch: Python, CUDA and GPUs of its wheels.

To support a release, add a row to ``TORCHES``.
"""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import ENVIRONMENT_RULES, on_section, pins_are_there
from hostwright.roles import Choice, Ground, Misfit, disk_is_enough, memory_is_enough, series
from hostwright.standard.roles.cuda import wheels
from hostwright.standard.roles.cuda.wheels import Codes, capabilities, python_range, usable_pythons

RELEASES = "PyTorch's RELEASE.md, and the metadata of the wheel"
ARCHITECTURES = (
    "TORCH_CUDA_ARCH_LIST of pytorch .ci/manywheel/build_cuda.sh; PyTorch's RELEASE.md; pytorch#172663; "
    "before 2.7 what torch reports where it has no code for a card (LeggedLab #26)"
)


@dataclass(frozen=True, slots=True)
class TorchRow:
    """Row of the compatibility table: a release series of PyTorch, with Python, CUDA and GPU code of its wheels."""

    series: str
    release: str
    pythons: tuple[str, ...]
    cuda: str
    codes: Codes


CUDA_12_6 = Codes(capabilities("5.0 6.0 7.0 7.5 8.0 8.6 9.0"))
CUDA_12_8 = Codes(capabilities("7.0 7.5 8.0 8.6 9.0 10.0 12.0"))
CUDA_13 = Codes(capabilities("7.5 8.0 8.6 9.0 10.0 12.0"))

TORCHES = (
    TorchRow("2.4", "2.4.1", python_range(8, 12), "12.1", CUDA_12_6),
    TorchRow("2.5", "2.5.1", python_range(9, 12), "12.4", CUDA_12_6),
    TorchRow("2.6", "2.6.0", python_range(9, 13), "12.4", CUDA_12_6),
    TorchRow("2.7", "2.7.1", python_range(9, 13), "12.6", CUDA_12_6),
    TorchRow("2.8", "2.8.0", python_range(9, 13), "12.8", CUDA_12_8),
    TorchRow("2.9", "2.9.1", python_range(10, 14), "12.8", CUDA_12_8),
    TorchRow("2.10", "2.10.0", python_range(10, 14), "12.8", CUDA_12_8),
    TorchRow("2.11", "2.11.0", python_range(10, 14), "13.0", CUDA_13),
    TorchRow("2.12", "2.12.1", python_range(10, 14), "13.0", CUDA_13),
    TorchRow("2.13", "2.13.0", python_range(10, 14), "13.0", CUDA_13),
    TorchRow("2.14", "2.14.1", python_range(10, 14), "13.0", CUDA_13),
    TorchRow("2.15", "2.15.0", python_range(11, 14), "13.2", CUDA_13),
)


def row_of(torch: str) -> TorchRow | None:
    """Return the compatibility table's row for the version ``torch``; ``None`` if missing."""
    return next((row for row in TORCHES if row.series == series(torch)), None)


def is_known(torch: str) -> Misfit | None:
    """Check that the compatibility table lists the series of ``torch``."""
    if row_of(torch):
        return None
    known = f"{TORCHES[0].series} to {TORCHES[-1].series}"
    return Misfit("pytorch", f"PyTorch {torch} is not in the compatibility table; use a release from {known}", RELEASES)


def has_a_wheel_for_the_python(torch: str, torch_python: str) -> Misfit | None:
    """Check that PyTorch has a wheel for the Python version ``torch_python``."""
    row = row_of(torch)
    if row is None or torch_python in row.pythons:
        return None
    have = f"{row.pythons[0]} to {row.pythons[-1]}"
    sentence = f"PyTorch {torch} has no wheel for Python {torch_python}, only for {have}"
    return Misfit("pytorch-python", sentence, RELEASES)


def runs_on_the_driver(torch: str, driver: str) -> Misfit | None:
    """Check that ``driver`` supports the CUDA release of PyTorch's wheels."""
    row = row_of(torch)
    return wheels.runs_on_the_driver(f"PyTorch {torch}", row.cuda, driver) if row else None


def has_code_for_the_gpus(torch: str, gpus: tuple[tuple[int, int], ...]) -> Misfit | None:
    """Check that PyTorch's wheel has compiled code for every GPU of the host."""
    row = row_of(torch)
    return wheels.has_code(f"PyTorch {torch}", row.codes if row else None, gpus, "gpu-pytorch", ARCHITECTURES)


def _on_gpus(torch: str) -> str:
    row = row_of(torch)
    return f"with {row.codes.span}" if row else ""


RULES = (
    memory_is_enough,
    disk_is_enough,
    is_known,
    has_a_wheel_for_the_python,
    runs_on_the_driver,
    has_code_for_the_gpus,
    *(on_section("pytorch", rule) for rule in (*ENVIRONMENT_RULES, pins_are_there, wheels.one_cuda)),
)
CHOICES = (
    Choice("torch", "PyTorch", 11, tuple(row.release for row in TORCHES), usual="2.14.1"),
    Choice("torch_python", "Python", 21, python_range(8, 14), usual="3.12", wanted=usable_pythons),
)
GROUNDS = (Ground("gpus", _on_gpus),)
