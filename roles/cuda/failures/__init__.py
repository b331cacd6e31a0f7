"""Failures of the CUDA toolkit, of its sources, and of packages installed with it."""

from __future__ import annotations

from hostwright.failures import FailureRule
from hostwright.standard.roles.cuda.failures.installed import CUDA
from hostwright.standard.roles.cuda.failures.programs import PROGRAM_RULES
from hostwright.standard.roles.cuda.failures.sources import SOURCE_RULES

FAILURES = (
    FailureRule(
        "driver-dragged-in",
        r"hostwright: apt would also install:",
        "the requested packages depend on packages that the stack excludes, such as another driver",
        "Install cuda-toolkit-X-Y, never cuda or cuda-X-Y, and check the host for a second CUDA repository",
        "NVIDIA/TensorRT#1741",
    ),
    FailureRule(
        "cuda-key-rotated",
        r"NO_PUBKEY A4B469963BF863CC",
        "NVIDIA's network repository is signed with the key of April 2022, and the host has only the older one",
        "Remove that repository from the host (the stack installs from the local one), or install cuda-keyring_1.1-1",
        "NVIDIA/cuda-repo-management#4",
    ),
    *CUDA,
    *SOURCE_RULES,
    *PROGRAM_RULES,
)
