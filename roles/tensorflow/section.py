"""Stack section of TensorFlow and its Python environment."""

from __future__ import annotations

from typing import ClassVar

from hostwright.resources import EnvironmentSection


class TensorflowSection(EnvironmentSection):
    """TensorFlow in a venv, with the packages that the constraints pin."""

    title: ClassVar = "TensorFlow"
    package: ClassVar = "tensorflow"
    stem: ClassVar = "tensorflow"
