"""The stack section of TensorFlow and its environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from hostwright.resources import EnvironmentSection

Layer = Literal["driver", "cuda", "cudnn"]


class TensorflowSection(EnvironmentSection):
    """TensorFlow in a venv, as any environment.

    ``libraries`` are the libraries that it opens at run time, with the layer that brings each; those that come as
    wheels are not among them.
    """

    title: ClassVar = "TensorFlow"
    package: ClassVar = "tensorflow"
    stem: ClassVar = "tensorflow"

    libraries: Mapping[str, Layer] = {}

    @property
    def opens(self) -> tuple[str, ...]:
        """The layers of its ``libraries``."""
        return tuple(dict.fromkeys(self.libraries.values()))
