"""Stack section of PyTorch and its Python environment."""

from __future__ import annotations

from typing import ClassVar

from hostwright.resources import HOMES, EnvironmentSection
from hostwright.roles import WORK


class PytorchSection(EnvironmentSection):
    """PyTorch in a venv, with CUDA's libraries from wheels."""

    title: ClassVar = "PyTorch"
    package: ClassVar = "torch"
    stem: ClassVar = "pytorch"
    compiles: ClassVar = True  # PyTorch's compiler Triton runs the host's C compiler.
    percents: ClassVar = {WORK: 15, HOMES: 35}
