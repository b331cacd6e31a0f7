"""Compatibility rules for NCCL: the CUDA series of NVIDIA's packages."""

from __future__ import annotations

from hostwright.roles import Choice, Misfit, disk_is_enough, series
from hostwright.standard.roles.nccl.section import NcclSection

#: NCCL release → CUDA series for which NVIDIA has packages of the release
BUILT_FOR = {"2.8.4": ("11.1", "11.2"), "2.11.4": ("11.4",), "2.15.5": ("11.0", "11.8")}
SOURCE = "versions of libnccl2 in NVIDIA's repository and images of CUDA; NVIDIA/nccl#889"


def is_known(nccl: str) -> Misfit | None:
    """Check that the compatibility table lists the release ``nccl``."""
    if nccl in BUILT_FOR:
        return None
    return Misfit("nccl", f"NCCL {nccl} is not in the compatibility table; use one of {', '.join(BUILT_FOR)}", SOURCE)


def is_built_for_the_toolkit(nccl: str, cuda: str) -> Misfit | None:
    """Check that NVIDIA built the release ``nccl`` for the series of the toolkit ``cuda``."""
    built = BUILT_FOR.get(nccl)
    if built is None or series(cuda) in built:
        return None
    return Misfit("nccl-cuda", f"NCCL {nccl} is built for CUDA {' and '.join(built)}, not for {cuda}", SOURCE)


def packages_are_for_the_toolkit(nccl_section: NcclSection, cuda: str) -> Misfit | None:
    """Check that the stack's NCCL packages are for the series of the toolkit ``cuda``."""
    if nccl_section.cuda == series(cuda):
        return None
    sentence = f"nccl.cuda is {nccl_section.cuda}, but the stack's CUDA is {cuda}"
    return Misfit("nccl-packages", sentence, SOURCE, f"packages whose version ends in +cuda{series(cuda)}")


RULES = (disk_is_enough, is_known, is_built_for_the_toolkit, packages_are_for_the_toolkit)
CHOICES = (Choice("nccl", "NCCL", 60, tuple(BUILT_FOR), usual="2.8.4"),)
