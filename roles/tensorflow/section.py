"""The stack section of TensorFlow and its environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from hostwright.resources import HOMES
from hostwright.roles import (
    WORK,
    ArtifactName,
    ExactVersion,
    PythonVersion,
    RelativePath,
    Section,
    Share,
    Stack,
    StackPart,
    TextFile,
    WithoutNulls,
    taken,
)

Layer = Literal["driver", "cuda", "cudnn"]


class Interpreter(StackPart):
    """A CPython that needs nothing of its host, in an archive whose directory ``inside`` holds ``bin/pythonX.Y``."""

    python: PythonVersion
    artifact: Annotated[str, ArtifactName]
    inside: RelativePath = "python"


class TensorflowSection(Section):
    """TensorFlow in a venv of the first of ``pythons`` that the host has, or of the ``interpreter`` that it brings.

    ``constraints`` is the text of a pip constraints file by Python version (in YAML, the name of a file beside it);
    ``wheelhouses`` names an archive of wheels by Python version, for hosts without an index. ``wheels`` is a list of
    wheels with their sha256, in the form of ``sha256sum``, beside those that Hostwright knows: where all pinned ones
    have one, pip takes no other. ``libraries`` are the libraries that it opens at run time, with the layer that brings
    each.
    """

    version: ExactVersion
    pythons: Annotated[tuple[PythonVersion, ...], Field(min_length=1)]
    interpreter: Interpreter | None = None
    constraints: Annotated[Mapping[PythonVersion, Annotated[str, TextFile]], WithoutNulls] = {}
    wheelhouses: Mapping[PythonVersion, Annotated[str, ArtifactName]] = {}
    wheels: Annotated[str, TextFile] = ""
    libraries: Mapping[str, Layer] = {}

    @property
    def opens(self) -> tuple[str, ...]:
        """The layers of its ``libraries``."""
        return tuple(dict.fromkeys(self.libraries.values()))

    @property
    def usable(self) -> tuple[str, ...]:
        """The Pythons that its environment may be made of, in order of preference."""
        return (self.interpreter.python,) if self.interpreter else self.pythons

    @property
    def series(self) -> str:
        """Major and minor version: ``2.9``."""
        return ".".join(self.version.split(".")[:2])

    def home(self, path: str = "") -> str:
        """The link through which the environment is used: ``path``, or ``/opt/tensorflow-SERIES`` if that is empty."""
        return path or f"/opt/tensorflow-{self.series}"

    def versions(self) -> Mapping[str, str]:
        """TensorFlow's version."""
        return {"tensorflow": self.version}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """pip unpacks where jobs work."""
        return taken("TensorFlow", f"{self.home()}/bin/python", {WORK: 3, HOMES: 6})
