"""The stack section of the CUDA toolkit."""

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
    """CUDA's repository in a ``.deb``, which unpacks to ``directory`` and brings its own ``key`` there.

    ``pin`` is the artifact that becomes ``pin_file`` (apt preferences).
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
        """The key's path on the host once the ``.deb`` is installed."""
        return f"{self.directory}/{self.key}"


class CudaRelease(StackPart):
    """A release. ``components`` are exact dpkg versions of its packages; ``nvcc`` is nvcc's own version number.

    Its packages come from ``repository``, a ``.deb`` that is a repository, or from ``network``, the vendor's at an
    address. ``compiler`` is the package of the compiler that nvcc gets, where the host's own gcc is too new for it:
    ``g++-10``.
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
            raise ValueError(
                "packages come from repository (a .deb) or from network, and both are named; set one to null"
            )
        if not self.repository and not self.network:
            raise ValueError("no source of packages: name a repository (a .deb), or network with its address and key")
        return self

    @property
    def source(self) -> LocalRepository | AptRepository:
        """The one of the two that the packages come from."""
        return next(one for one in (self.repository, self.network) if one)

    @property
    def directory(self) -> str:
        """The directory to which ``repository`` unpacks; empty where the packages come from ``network``."""
        return self.repository.directory if self.repository else ""

    @property
    def series(self) -> str:
        """Major and minor version: ``11.2``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def prefix(self) -> str:
        """The toolkit's directory: ``/usr/local/cuda-11.2``."""
        return f"/usr/local/cuda-{self.series}"

    @property
    def host_compiler(self) -> str:
        """The path of ``compiler``; empty where nvcc takes the host's own."""
        return f"/usr/bin/{self.compiler}" if self.compiler else ""

    @property
    def packages(self) -> Mapping[str, str]:
        """All packages that it names, each with its version."""
        return {self.package: self.package_version, **self.components}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """A repository in a ``.deb`` is there twice, packed and unpacked; apt keeps the packages of another one."""
        packages = {CACHE: 14, self.directory: 14} if self.directory else {"/var/cache/apt": 14}
        return taken("CUDA", f"{self.prefix}/bin/nvcc", {**packages, self.prefix: 25, "/usr/local": 0})


class CudaSection(CudaRelease, Section):
    """The toolkit to which ``/usr/local/cuda`` leads, and those ``beside`` it, by names of their own.

    Another release's packages have other names: set those of the extended stack to null to remove them.
    """

    vendor: ClassVar = "NVIDIA"

    beside: Annotated[Mapping[Name, CudaRelease], WithoutNulls] = {}

    @model_validator(mode="after")
    def _one_of_a_series(self) -> Self:
        series = [one.series for one in self.toolkits]
        if twice := next((one for one in series if series.count(one) > 1), ""):
            raise ValueError(f"two toolkits of {twice} would share one directory; name one of each series")
        return self

    @property
    def toolkits(self) -> tuple[CudaRelease, ...]:
        """All of them; the first is that of ``/usr/local/cuda``."""
        return (self, *self.beside.values())

    @property
    def runtime(self) -> str:
        """The name by which programs load the runtime: 11.0's in all of CUDA 11, then one per major version."""
        major = self.version.partition(".")[0]
        return f"libcudart.so.{'11.0' if major == '11' else major}"

    def versions(self) -> Mapping[str, str]:
        """The toolkit's version, its compiler's version number, which tells its updates apart, and those beside it."""
        beside = {f"cuda {one.series}": one.version for one in self.beside.values()}
        return {"cuda": self.version, "nvcc": self.nvcc, **beside}

    def shares(self, stack: Stack, /) -> tuple[Share, ...]:
        """Those of each toolkit."""
        beside = (share for one in self.beside.values() for share in one.shares(stack))
        return (*super().shares(stack), *beside)
