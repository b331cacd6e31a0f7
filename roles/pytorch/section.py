"""The stack section of PyTorch and its environment."""

from __future__ import annotations

from typing import ClassVar

from hostwright.resources import HOMES, EnvironmentSection
from hostwright.roles import WORK


class PytorchSection(EnvironmentSection):
    """PyTorch in a venv, as any environment, with the CUDA that its wheels bring."""

    title: ClassVar = "PyTorch"
    package: ClassVar = "torch"
    stem: ClassVar = "pytorch"
    compiles: ClassVar = True  # Triton, with the host's C compiler
    percents: ClassVar = {WORK: 15, HOMES: 35}
