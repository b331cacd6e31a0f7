"""Stack section of TensorRT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from hostwright.resources import CACHE
from hostwright.roles import ArtifactName, DebianVersion, ExactVersion, Section, Share, Stack, StackPart, taken, version


class NvrtcPackage(StackPart):
    """NVIDIA's package of the runtime compiler (NVRTC) of one CUDA series, usable beside any toolkit.

    ``cuda``: the series, such as ``11.1``, which is part of the library's name.
    """

    cuda: Annotated[str, Field(pattern=r"^\d{1,2}\.\d{1,2}$")]
    version: DebianVersion
    artifact: Annotated[str, ArtifactName]

    @property
    def package(self) -> str:
        """Name of the Debian package: ``cuda-nvrtc-11-1``."""
        return f"cuda-nvrtc-{self.cuda.replace('.', '-')}"

    @property
    def prefix(self) -> str:
        """Directory of the CUDA series of the runtime compiler."""
        return f"/usr/local/cuda-{self.cuda}"

    @property
    def libraries(self) -> str:
        return f"{self.prefix}/targets/x86_64-linux/lib"

    @property
    def library(self) -> str:
        """File name by which TensorRT loads the compiler: ``libnvrtc.so.11.1``."""
        return f"libnvrtc.so.{self.cuda}"


class TensorrtSection(Section):
    """TensorRT from NVIDIA's archive, in a separate directory, because NVIDIA's packages require packages of cuDNN.

    ``nvrtc``: runtime compiler with which TensorRT was linked. TensorRT 7.2 loads the compiler of CUDA 11.1, even with
    CUDA 11.2.
    """

    vendor: ClassVar = "NVIDIA"

    version: ExactVersion
    artifact: Annotated[str, ArtifactName]
    nvrtc: NvrtcPackage

    @property
    def inside(self) -> str:
        """Top directory of the archive: ``TensorRT-7.2.3.4``."""
        return f"TensorRT-{self.version}"

    @property
    def prefix(self) -> str:
        return f"/usr/local/{self.inside}"

    @property
    def major(self) -> str:
        """Major version, the last part of the file names by which programs load the libraries: ``7``."""
        return self.version.partition(".")[0]

    @property
    def library_version(self) -> str:
        """Version suffix of the libraries' file names: ``7.2.3``."""
        return ".".join(self.version.split(".")[:3])

    @property
    def libraries(self) -> tuple[str, str]:
        return f"libnvinfer.so.{self.major}", f"libnvinfer_plugin.so.{self.major}"

    @property
    def number(self) -> int:
        """Number that TensorRT's function ``getInferLibVersion()`` returns: 7203 for 7.2.3.4."""
        major, minor, patch = version(self.library_version).release
        return major * 1000 + minor * 100 + patch

    def versions(self) -> Mapping[str, str]:
        return {"tensorrt": self.version}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """Return the disk space for the unpacked archive, with libraries for static linking."""
        return taken("TensorRT", f"{self.prefix}/lib/{self.libraries[0]}", {CACHE: 5, self.prefix: 14})
