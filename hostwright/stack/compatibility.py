"""The tables of what fits what: TensorFlow, Python, CUDA, cuDNN, drivers, kernels, GPU architectures.

To teach Hostwright a new release, add a row: every refusal and every suggestion is computed from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from packaging.version import Version

from hostwright.stack.gpus import Architecture

TF_TABLE = "TensorFlow's tested build configurations (tensorflow.org/install/source)"
CUDA_TABLE = "CUDA release notes, table of toolkits and drivers"


@dataclass(frozen=True, slots=True)
class TensorFlowRow:
    """A release series, and what its wheels were built and tested with."""

    series: str
    release: str
    pythons: tuple[str, ...]
    cuda: str
    cudnn: str


@dataclass(frozen=True, slots=True)
class DriverRow:
    """A driver release and the kernels that its module is known to build on unpatched."""

    version: str
    kernels: str
    source: str


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

CUDNNS = ("8.1.0.77", "8.6.0.163")

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
)

#: first driver branch of a generation → the oldest and the newest architecture that it drives
DRIVER_GPUS = {
    450: (Architecture.KEPLER, Architecture.AMPERE),
    510: (Architecture.MAXWELL, Architecture.AMPERE),
    520: (Architecture.MAXWELL, Architecture.HOPPER),
    570: (Architecture.MAXWELL, Architecture.BLACKWELL),
}

#: the first toolkit that has code for an architecture, where that is newer than the oldest one here
TOOLKIT_FOR = {Architecture.ADA: "11.8", Architecture.HOPPER: "11.8", Architecture.BLACKWELL: "12.8"}

#: what TensorFlow's wheels have code for, read from the build_info of 2.9.0, 2.9.3, 2.10.1, 2.11.1 and 2.12.1: sm_35 to
#: sm_75 compiled, and compute_80, which is PTX: the driver compiles that for Ampere and later
MINIMUM_CAPABILITY = (3, 5)
COMPILED_CAPABILITY = (7, 5)


@cache
def version(text: str) -> Version:
    """A version, parsed once."""
    return Version(text)


def series(text: str) -> str:
    """Major and minor version: ``11.2`` of 11.2.2."""
    return ".".join(text.split(".")[:2])


def tensorflow_row(release: str) -> TensorFlowRow | None:
    """The table's row for a TensorFlow version."""
    return next((row for row in TENSORFLOWS if row.series == series(release)), None)


def kernel_version(release: str) -> Version | None:
    """The version in ``uname -r``: 5.15.0 of ``5.15.0-91-generic``."""
    match = re.match(r"\d+\.\d+(\.\d+)?", release)
    return Version(match[0]) if match else None


def gpus_of(driver: str) -> tuple[Architecture, Architecture] | None:
    """The oldest and newest architecture that a driver drives; ``None`` for a branch older than the table."""
    branch = int(driver.partition(".")[0])
    known = [first for first in DRIVER_GPUS if first <= branch]
    return DRIVER_GPUS[max(known)] if known else None
