"""What a text shows of CUDA's wheels beside the message of a library: two sets of them in one environment."""

from __future__ import annotations

from typing import Final

from hostwright.failures import Variant

#: lines of pip that name a wheel of CUDA's
WHEEL_LINES: Final = r"\bnvidia-[a-z-]{2,30}-cu1[0-9]\b"

REINSTALL: Final = (
    "Take out both sets, for each uninstallation also takes files of the other away (pip freeze | grep -oE"
    " '^nvidia-.*-cu1[23]' | xargs pip uninstall -y), then install the framework that is wanted again, with its wheels:"
    " pip install --force-reinstall --no-cache-dir torch, with its index; the other one gets an environment of its own."
    " The stack's own comes back whole when you provision"
)

#: two sets of wheels, in the lines beside a message of any library
TWO_SETS: Final = Variant(
    r"nvidia-[a-z-]{2,30}-cu12\b(?s:.)*nvidia-[a-z-]{2,30}-cu13\b"
    r"|nvidia-[a-z-]{2,30}-cu13\b(?s:.)*nvidia-[a-z-]{2,30}-cu12\b",
    "wheels of two CUDA releases are, or were, in one environment: cuDNN, NCCL, NVSHMEM and cuSPARSELt of both write"
    " the same files (site-packages/nvidia/cudnn/lib/libcudnn.so.9), so that the later replaces the earlier's",
    REINSTALL,
)
