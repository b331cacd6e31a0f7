"""Types for a role's module ``found``, which finds the role's software on any host and describes it in the form of a
stack file. Pure data.

The module defines ``FOUND``, a ``Finder``: shell code that lists files and packages, names of Python packages, and two
functions. One function returns the values found, the other returns them in the form of a stack file. One probe runs the
shell code of all roles on every host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostwright.stack.versions import series

#: values that a role found on a host, as pairs: name or path, and value
FoundValues = Iterator[tuple[str, str]]

EXACT, SAME_SERIES, OTHER = 0, 1, 2  #: distance between a host's version and the stack's version


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A package in a Python environment, according to the package's metadata; no code in the environment was run."""

    environment: str  #: path of the directory that contains ``lib/pythonX.Y`` or ``conda-meta``
    name: str  #: name in lowercase, with ``-`` instead of ``_``
    version: str
    python: str = ""  #: minor version of Python (``3.11``); empty if only conda's metadata lists the package
    conda: bool = False


@dataclass(frozen=True, slots=True)
class OnHost:
    """The input for the functions of a ``Finder``: the rows that its script printed, and the host's Debian and Python
    packages.
    """

    rows: tuple[tuple[str, ...], ...] = ()
    #: installed Debian packages: name without architecture → version
    debs: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[PythonPackage, ...] = ()

    def all(self, name: str) -> tuple[tuple[str, ...], ...]:
        """The values of each row with this name."""
        return tuple(row[1:] for row in self.rows if row[0] == name and len(row) > 1)

    def first(self, name: str) -> str:
        """The first value of the first row with this name; empty without such a row."""
        return next((cells[0] for cells in self.all(name)), "")


@dataclass(frozen=True, slots=True)
class Adopted:
    """A role's software on a host, compared with the role's section of a stack.

    ``section`` has the host's values that differ, in the form of a stack file. ``artifacts`` are the files for these
    values. ``unlike`` is the distance between the host's versions and the stack's. ``left_out`` is the reason why no
    stack can describe this software: then the new stack does not have the role, and the software remains unchanged.
    ``notes`` are for the operator.
    """

    section: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    unlike: int = EXACT
    left_out: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds a role's software on a host, whether Hostwright installed it or not.

    ``script`` prints ``row NAME VALUE…`` and runs as root: it may list and read files, but must not run programs that
    it finds. ``packages`` are the names of the software's Python packages in pip and conda. ``adopted`` compares the
    findings with a section of a stack; without ``adopted``, the findings are only displayed.
    """

    values: Callable[[OnHost], FoundValues]
    script: str = ""
    packages: tuple[str, ...] = ()
    adopted: Callable[[OnHost, Any], Adopted] | None = None


def distance(have: str, want: str) -> int:
    """The distance between the version ``have`` and the stack's version ``want``: equal, same major and minor version,
    or other.
    """
    if have == want:
        return EXACT
    return SAME_SERIES if have and series(have) == series(want) else OTHER


def placed_libraries(host: OnHost) -> FoundValues:
    """Yield the values for a library: directories that contain the library, and Python environments that have the
    library as a package.
    """
    for place, version, *_ in host.all("library"):
        yield place, version
    for package in host.packages:
        yield package.environment, f"{package.version} ({package.name})"
