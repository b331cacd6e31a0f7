"""Types for a role's module ``found``, which describes the role's software on a host in the format of a stack file.
Pure data.

The module defines ``FOUND``, a ``Finder``. A ``Finder`` has shell code that lists files and packages, names of Python
packages, and functions that make values and entries of a stack file. One probe runs the shell code of all roles on
every host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostwright.stack.versions import series

#: iterator over pairs of a name or path, and a value
FoundValues = Iterator[tuple[str, str]]

EXACT, SAME_SERIES, OTHER = 0, 1, 2  #: results of ``distance``: equal versions, equal minor versions, other versions


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A package in a Python environment on a host, as described by the package's metadata."""

    environment: str  #: path of the directory that contains ``lib/pythonX.Y`` or ``conda-meta``
    name: str  #: package name in lowercase, with ``-`` instead of ``_``
    version: str
    python: str = ""  #: minor version of Python (``3.11``); empty if only conda lists the package
    conda: bool = False


@dataclass(frozen=True, slots=True)
class OnHost:
    """The input for a ``Finder``: the rows that the finder's script printed, and the host's Debian and Python
    packages.
    """

    rows: tuple[tuple[str, ...], ...] = ()
    #: version of each installed Debian package, by name without architecture
    debs: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[PythonPackage, ...] = ()

    def all(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Return the values of each row with the name ``name``."""
        return tuple(row[1:] for row in self.rows if row[0] == name and len(row) > 1)

    def first(self, name: str) -> str:
        """Return the first value of the first row with the name ``name``; empty without such a row."""
        return next((cells[0] for cells in self.all(name)), "")


@dataclass(frozen=True, slots=True)
class Adopted:
    """A role's software on a host, compared with the role's section of a stack.

    ``section`` has the host's values that differ, as in a stack file, and ``artifacts`` are the files for these values.
    ``unlike`` is the ``distance`` between the host's and the stack's versions. ``left_out`` is the reason why no stack
    can describe the software. ``notes`` are sentences for the operator.
    """

    section: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    unlike: int = EXACT
    left_out: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds a role's software on a host, however it was installed.

    ``script`` runs as root and prints ``row NAME VALUE…``, but must not run programs that it finds. ``packages`` are
    names of Python packages in pip and conda. ``values`` returns the found values as text. ``adopted`` compares the
    found software with a stack's section; without ``adopted``, the values are only printed.
    """

    values: Callable[[OnHost], FoundValues]
    script: str = ""
    packages: tuple[str, ...] = ()
    adopted: Callable[[OnHost, Any], Adopted] | None = None


def distance(have: str, want: str) -> int:
    """The distance of the host's version ``have`` from the stack's version ``want``: ``EXACT`` if equal,
    ``SAME_SERIES`` if major and minor version are equal, else ``OTHER``.
    """
    if have == want:
        return EXACT
    return SAME_SERIES if have and series(have) == series(want) else OTHER


def placed_libraries(host: OnHost) -> FoundValues:
    """Yield each directory and Python environment with a role's library, and the library's version."""
    for place, version, *_ in host.all("library"):
        yield place, version
    for package in host.packages:
        yield package.environment, f"{package.version} ({package.name})"
