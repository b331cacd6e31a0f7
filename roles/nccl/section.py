"""Stack section of NCCL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from hostwright.resources import CACHE
from hostwright.roles import ArtifactName, ExactVersion, Section, Share, Stack, taken, version

HOME = "/usr/lib/x86_64-linux-gnu"  #: directory of the library in NVIDIA's NCCL packages
LIBRARY = "libnccl.so.2"  #: file name by which programs load NCCL
PACKAGE, DEVELOPMENT = "libnccl2", "libnccl-dev"


class NcclSection(Section):
    """NCCL from NVIDIA's packages for one series of CUDA (``cuda``, such as ``11.2``).

    ``artifact``: package ``libnccl2``. ``development``: package ``libnccl-dev`` with the header.
    """

    vendor: ClassVar = "NVIDIA"

    version: ExactVersion
    cuda: Annotated[str, Field(pattern=r"^\d{1,2}\.\d{1,2}$")]
    artifact: Annotated[str, ArtifactName]
    development: Annotated[str, ArtifactName]

    @property
    def package_version(self) -> str:
        """Version of both packages, such as ``2.8.4-1+cuda11.2``."""
        return f"{self.version}-1+cuda{self.cuda}"

    @property
    def number(self) -> int:
        """Number that NCCL's function ``ncclGetVersion()`` returns: 2804 for 2.8.4, and 21505 for 2.15.5."""
        major, minor, patch = version(self.version).release[:3]
        return major * (1000 if (major, minor) <= (2, 8) else 10000) + minor * 100 + patch

    def versions(self) -> Mapping[str, str]:
        return {"nccl": self.version}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """Return the disk space for both packages and their ``.deb`` files, which are kept."""
        return taken("NCCL", f"{HOME}/{LIBRARY}", {CACHE: 1, HOME: 2})
