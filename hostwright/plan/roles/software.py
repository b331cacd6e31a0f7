"""The software that a state installed on a host, for SBOMs. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hostwright.stack.stack import Artifact

#: kinds of software: Debian package, Python package, driver, files from an archive, single file
SoftwareKind = Literal["deb", "pypi", "driver", "archive", "file"]


@dataclass(frozen=True, slots=True)
class Software:
    """One piece of software on a host: ``version`` was read on the host, and is empty if the software is missing.

    ``wanted`` is the stack's version, empty if any version is accepted. ``flaw`` describes any other difference from
    the stack. ``artifact`` is the stack's file from which it was installed; ``sha256`` are the possible hashes of a
    source file that is not in the stack. ``brought`` is whether the software was installed from a file or repository of
    the stack, not from the distribution. ``supplier`` is set if neither the vendor of the stack's section nor the
    distribution supplies the software. ``parts`` are software installed together with this piece.
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
    source: str = ""  #: name of the source package from which a Debian package was built
    parts: tuple[Software, ...] = ()
