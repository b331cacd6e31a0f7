"""What a state put on a host, as SBOMs name it. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hostwright.stack.stack import Artifact

#: of a Debian package, a Python package, a driver, the files of an archive, one file
SoftwareKind = Literal["deb", "pypi", "driver", "archive", "file"]


@dataclass(frozen=True, slots=True)
class Software:
    """One piece of software on a host: ``version`` is what was read there, and empty where it is missing.

    ``wanted`` is the stack's version, empty where any will do; ``flaw`` says what else is not as wanted. ``artifact``
    is the stack's file that it came from; ``sha256`` are the hashes of which another file that it came from had one.
    ``brought`` marks what comes from a file or repository that the stack names; anything else is the distribution's.
    ``supplier`` is for what neither the vendor of the stack's section nor the distribution supplies. ``parts`` came
    with it.
    """

    kind: SoftwareKind
    name: str
    version: str
    wanted: str = ""
    flaw: str = ""
    artifact: Artifact | None = None
    sha256: tuple[str, ...] = ()
    brought: bool = False
    supplier: str = ""
    architecture: str = ""
    source: str = ""  #: of a Debian package: the source package that it was built from
    parts: tuple[Software, ...] = ()
