"""The software that a state installed on a host, for SBOMs. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hostwright.stack.stack import Artifact

#: a Debian package, a Python package, a driver, the files of an archive, a single file
SoftwareKind = Literal["deb", "pypi", "driver", "archive", "file"]


@dataclass(frozen=True, slots=True)
class Software:
    """One piece of software on a host: ``version`` was read on the host, and is empty if the software is missing.

    ``wanted`` is the stack's version, empty if any version is accepted; ``flaw`` describes any other difference.
    ``artifact`` is the stack's file from which it was installed; ``sha256`` are the possible hashes of another source
    file. ``brought``: it was installed from a file or repository of the stack, otherwise from the distribution.
    ``supplier`` is set if neither the vendor of the stack's section nor the distribution supplies it. ``parts`` were
    installed with it.
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
    source: str = ""  #: source package of a Debian package
    parts: tuple[Software, ...] = ()
