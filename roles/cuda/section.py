"""Stack section of the CUDA toolkit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from hostwright.resources import CACHE
from hostwright.roles import (
    AbsolutePath,
    AptRepository,
    ArtifactName,
    DebianVersion,
    ExactVersion,
    FileName,
    Fingerprint,
    Name,
    Section,
    Share,
    Stack,
    StackPart,
    WithoutNulls,
    taken,
)


class LocalRepository(StackPart):
    """CUDA's repository in a ``.deb``, with its ``key``, in the directory ``directory``.

    ``pin``: name of the artifact for ``pin_file``, a file of apt preferences.
    """

    package: Name
    artifact: Annotated[str, ArtifactName]
    directory: AbsolutePath
    key: FileName
    fingerprint: Fingerprint | None = None
    list_file: AbsolutePath
    pin: Annotated[str, ArtifactName]
    pin_file: AbsolutePath

    @property
    def key_file(self) -> str:
        return f"{self.directory}/{self.key}"


class CudaRelease(StackPart):
    """Release of the CUDA toolkit. ``components``: packages with exact versions. ``nvcc``: version of nvcc.

    The packages come from ``repository``, a ``.deb`` with a repository, or from ``network``, the vendor's repository at
    a URL. ``compiler``: package of a compiler for nvcc if the host's gcc is too new, such as ``g++-10``.
    """

    version: ExactVersion
    package: Name
    package_version: DebianVersion
    nvcc: Annotated[str, Field(pattern=r"^V[0-9.]+$")]
    compiler: Annotated[str, Field(pattern=r"^(g\+\+-[0-9]{1,2})?$")] = ""
    components: Annotated[Mapping[Name, DebianVersion], WithoutNulls] = {}
    repository: LocalRepository | None = None
    network: AptRepository | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.repository and self.network:
            raise ValueError("both repository (a .deb) and network are set; set one to null")
        if not self.repository and not self.network:
            raise ValueError(
                "no source of the CUDA packages is set; set `repository` (a .deb), or `network` with its address and "
                "key"
            )
        return self

    @property
    def source(self) -> LocalRepository | AptRepository:
        return next(one for one in (self.repository, self.network) if one)

    @property
    def directory(self) -> str:
        """Directory of the unpacked ``repository``; empty if the packages come from ``network``."""
        return self.repository.directory if self.repository else ""

    @property
    def series(self) -> str:
        """Major and minor version of the toolkit: ``11.2``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def prefix(self) -> str:
        """Directory of the toolkit: ``/usr/local/cuda-11.2``."""
        return f"/usr/local/cuda-{self.series}"

    @property
    def host_compiler(self) -> str:
        """Path of the compiler in the package ``compiler``; empty for the host's own compiler."""
        return f"/usr/bin/{self.compiler}" if self.compiler else ""

    @property
    def packages(self) -> Mapping[str, str]:
        return {self.package: self.package_version, **self.components}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """Return the disk space for the toolkit, with its repository or apt's cache."""
        packages = {CACHE: 14, self.directory: 14} if self.directory else {"/var/cache/apt": 14}
        return taken("CUDA", f"{self.prefix}/bin/nvcc", {**packages, self.prefix: 25, "/usr/local": 0})


class CudaSection(CudaRelease, Section):
    """Toolkit at ``/usr/local/cuda``, and additional toolkits by name (``beside``).

    A stack that extends another stack with a different release must set the packages of the other release to null in
    ``components``.
    """

    vendor: ClassVar = "NVIDIA"

    beside: Annotated[Mapping[Name, CudaRelease], WithoutNulls] = {}

    @model_validator(mode="after")
    def _one_of_a_series(self) -> Self:
        series = [one.series for one in self.toolkits]
        if twice := next((one for one in series if series.count(one) > 1), ""):
            raise ValueError(
                f"two toolkits of CUDA {twice} would share one directory; keep one toolkit for each series"
            )
        return self

    @property
    def toolkits(self) -> tuple[CudaRelease, ...]:
        """All toolkits, beginning with the toolkit at ``/usr/local/cuda``."""
        return (self, *self.beside.values())

    @property
    def runtime(self) -> str:
        """File name by which programs load the CUDA runtime, equal for all releases of one major version since CUDA
        11.
        """
        major = self.version.partition(".")[0]
        return f"libcudart.so.{'11.0' if major == '11' else major}"

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the toolkit, nvcc and the additional toolkits, by name."""
        beside = {f"cuda {one.series}": one.version for one in self.beside.values()}
        return {"cuda": self.version, "nvcc": self.nvcc, **beside}

    def shares(self, stack: Stack, /) -> tuple[Share, ...]:
        beside = (share for one in self.beside.values() for share in one.shares(stack))
        return (*super().shares(stack), *beside)
