"""The software that a state installed on a host, for SBOMs. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hostwright.stack.stack import Artifact

#: kind of software that a stack installs
SoftwareKind = Literal["deb", "pypi", "driver", "archive", "file"]


@dataclass(frozen=True, slots=True)
class Software:
    """One piece of software on a host. ``version`` was read on the host, and is empty if the software is missing.

    ``wanted`` is the stack's version, or empty if any version is correct. ``flaw`` describes another difference from
    the stack. ``artifact`` is the stack's file from which the software was installed; if another file was used,
    ``sha256`` has the possible hashes of that file. ``brought`` is whether the stack supplied the file or repository.
    ``supplier`` is set if neither the section's vendor nor the distribution supplies the software. ``parts`` is
    software that was installed together with this software.
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
    source: str = ""  #: name of the source package, if the software is a Debian package
    parts: tuple[Software, ...] = ()
