"""Stack section of JAX and its Python environment."""

from __future__ import annotations

from typing import ClassVar

from hostwright.resources import HOMES, EnvironmentSection
from hostwright.roles import WORK


class JaxSection(EnvironmentSection):
    """JAX in a venv, with the CUDA plugin and the CUDA wheels that the constraints pin."""

    title: ClassVar = "JAX"
    package: ClassVar = "jax"
    stem: ClassVar = "jax"
    percents: ClassVar = {WORK: 12, HOMES: 30}
