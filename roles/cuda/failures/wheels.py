"""Cause that rules about several libraries share: two sets of CUDA wheels in one environment."""

from __future__ import annotations

from typing import Final

from hostwright.failures import Variant

WHEEL_LINES: Final = r"\bnvidia-[a-z-]{2,30}-cu1[0-9]\b"  #: pattern of a CUDA wheel's name in pip's output

REINSTALL: Final = (
    "Uninstall both sets, because each uninstallation also deletes files of the other (pip freeze | grep -oE "
    "'^nvidia-.*-cu1[23]' | xargs pip uninstall -y), then install the intended framework again, with its wheels: pip "
    "install --force-reinstall --no-cache-dir torch, with its index. Use a separate environment for the other "
    "framework. Provisioning restores the stack's own"
)

TWO_SETS: Final = Variant(
    r"nvidia-[a-z-]{2,30}-cu12\b(?s:.)*nvidia-[a-z-]{2,30}-cu13\b"
    r"|nvidia-[a-z-]{2,30}-cu13\b(?s:.)*nvidia-[a-z-]{2,30}-cu12\b",
    "wheels of two CUDA releases are, or were, in one environment: cuDNN, NCCL, NVSHMEM and cuSPARSELt of both "
    "contain the same files (site-packages/nvidia/cudnn/lib/libcudnn.so.9), so the later replaces the earlier's",
    REINSTALL,
)
