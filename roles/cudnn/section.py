"""Stack section of cuDNN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from hostwright.resources import CACHE
from hostwright.roles import ArtifactName, ExactVersion, FileName, Name, Section, Share, Stack, taken
from hostwright.standard.roles.cuda.section import CudaSection


class CudnnSection(Section):
    """cuDNN from NVIDIA's archive, installed in the directory of the stack's toolkit.

    ``inside``: top directory of the archive. ``libraries``: directory of the libraries in ``inside``. ``record``: path
    of the host's record of cuDNN's files. Stacks with toolkits side by side need different records, otherwise the newer
    stack removes the older stack's files.
    """

    vendor: ClassVar = "NVIDIA"

    version: ExactVersion
    artifact: Annotated[str, ArtifactName]
    inside: FileName = "cuda"
    libraries: FileName = "lib64"
    record: Name = "cudnn"

    @property
    def number(self) -> int:
        """Number that cuDNN's function ``cudnnGetVersion()`` returns: 8100 for 8.1.0.77."""
        major, minor, patch = (int(part) for part in self.version.split(".")[:3])
        return major * 1000 + minor * 100 + patch

    @property
    def library_version(self) -> str:
        """Version suffix of the libraries' file names: ``8.1.0``."""
        return ".".join(self.version.split(".")[:3])

    @property
    def library(self) -> str:
        """File name by which programs load cuDNN: ``libcudnn.so.8``."""
        return f"libcudnn.so.{self.version.partition('.')[0]}"

    def versions(self) -> Mapping[str, str]:
        return {"cudnn": self.version}

    def shares(self, stack: Stack, /) -> tuple[Share, ...]:
        prefix = stack.section(CudaSection).prefix
        return taken("cuDNN", f"{prefix}/lib64/{self.library}", {CACHE: 8, prefix: 15})
