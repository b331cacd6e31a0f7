"""Finds a role's layer on any host, and describes it as a part of a stack. Pure data.

A role's ``found.py`` defines ``FOUND``, a ``Finder``: shell code that lists files and packages, the Python packages of
the layer, and two functions. One returns the values found, the other returns them as a part of a stack. The engine runs
the finders of all roles in one probe, on every host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostwright.stack.versions import series

#: the values of one layer, as pairs: name or path, and value
FoundValues = Iterator[tuple[str, str]]

EXACT, SAME_SERIES, OTHER = 0, 1, 2  #: distance of a host's version from a stack's


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A package in a Python environment, according to its metadata; no code of the environment was run."""

    environment: str  #: the directory that holds ``lib/pythonX.Y``, or ``conda-meta``
    name: str  #: lowercase, with ``-`` for ``_``
    version: str
    python: str = ""  #: minor version (``3.11``); empty if only conda's record has the package
    conda: bool = False


@dataclass(frozen=True, slots=True)
class OnHost:
    """The input of a finder: the rows of its script, the host's Debian packages, and its Python packages."""

    rows: tuple[tuple[str, ...], ...] = ()
    debs: Mapping[str, str] = field(default_factory=dict)  #: installed packages: name without architecture → version
    packages: tuple[PythonPackage, ...] = ()

    def all(self, name: str) -> tuple[tuple[str, ...], ...]:
        """The cells of each row with this name."""
        return tuple(row[1:] for row in self.rows if row[0] == name and len(row) > 1)

    def first(self, name: str) -> str:
        """The first cell of the first row with this name; empty if no row has it."""
        return next((cells[0] for cells in self.all(name)), "")


@dataclass(frozen=True, slots=True)
class Adopted:
    """The state of a layer on a host, compared with a stack's section.

    ``section`` has the differing values of the host in the form of a stack file, ``artifacts`` their files, and
    ``unlike`` the distance of the host from the section. ``left_out`` is the reason why no stack can describe the
    layer: then the role is left out of the stack, and the layer remains unchanged. ``notes`` are for the operator.
    """

    section: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    unlike: int = EXACT
    left_out: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds a layer on a host, whether Hostwright installed it or not.

    ``script`` prints ``row NAME VALUE…`` and runs as root: it may list and read files, but must not run programs that
    it finds. ``packages`` are the names of the layer's Python packages in pip and conda. ``adopted`` receives the
    section of the stack to compare; without ``adopted``, the layer is only displayed.
    """

    values: Callable[[OnHost], FoundValues]
    script: str = ""
    packages: tuple[str, ...] = ()
    adopted: Callable[[OnHost, Any], Adopted] | None = None


def distance(have: str, want: str) -> int:
    """The distance of a version from a stack's: equal, same major and minor version, or other."""
    if have == want:
        return EXACT
    return SAME_SERIES if have and series(have) == series(want) else OTHER


def placed_libraries(host: OnHost) -> FoundValues:
    """The values of a library layer: its directories, and environments that have it as a package."""
    for place, version, *_ in host.all("library"):
        yield place, version
    for package in host.packages:
        yield package.environment, f"{package.version} ({package.name})"
