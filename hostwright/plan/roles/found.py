"""What a role finds of its layer on a host that anybody set up, and what of it a stack can hold. Pure data.

A role's ``found.py`` defines ``FOUND``, a ``Finder``: a piece of shell that lists what there is, the Python packages
that belong to the layer, and two functions, one of which describes what was found, the other of which says it as a part
of a stack. The engine asks the finders of all roles in one probe, whatever the roles of the host are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostwright.stack.versions import series

#: of one layer: pairs of a value's name, or the path of the place where it is, and the value
FoundValues = Iterator[tuple[str, str]]

EXACT, SAME_SERIES, OTHER = 0, 1, 2  #: how far a host's version is from a stack's


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A package in a Python environment, by the name of its metadata; nothing in the environment was run."""

    environment: str  #: the directory that holds ``lib/pythonX.Y``, or ``conda-meta``
    name: str  #: lowercase, with ``-`` for ``_``
    version: str
    python: str = ""  #: minor version (``3.11``); empty where conda's own record is all that names it
    conda: bool = False


@dataclass(frozen=True, slots=True)
class OnHost:
    """What a finder reads: the rows of its script, the host's Debian packages, and its Python packages."""

    rows: tuple[tuple[str, ...], ...] = ()
    debs: Mapping[str, str] = field(default_factory=dict)  #: name without architecture → version, of installed ones
    packages: tuple[PythonPackage, ...] = ()

    def all(self, name: str) -> tuple[tuple[str, ...], ...]:
        """The cells of each row that has this name."""
        return tuple(row[1:] for row in self.rows if row[0] == name and len(row) > 1)

    def first(self, name: str) -> str:
        """The first cell of the first such row; empty without any."""
        return next((cells[0] for cells in self.all(name)), "")


@dataclass(frozen=True, slots=True)
class Adopted:
    """What a host has of a layer, beside the section of a stack.

    ``section`` is what the host has otherwise, in the form of a stack file, ``artifacts`` the files for that, and
    ``unlike`` how far the host is from the section. ``left_out`` is why no stack can have it as it is: then the role is
    not among the stack's roles, and nothing of it is changed. ``notes`` are what an operator should know of it.
    """

    section: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    unlike: int = EXACT
    left_out: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finder:
    """How a role finds what a host has of its layer, whoever installed it.

    ``script`` prints ``row NAME VALUE…`` and runs as root: it may list and read, and must not run what it finds.
    ``packages`` are the names of Python packages that belong to the layer, as pip and as conda call them. ``adopted``
    gets the section of the stack that is compared; without it, the layer is only shown.
    """

    values: Callable[[OnHost], FoundValues]
    script: str = ""
    packages: tuple[str, ...] = ()
    adopted: Callable[[OnHost, Any], Adopted] | None = None


def distance(have: str, want: str) -> int:
    """How far a version is from a stack's: the same, of the same major and minor version, or another."""
    if have == want:
        return EXACT
    return SAME_SERIES if have and series(have) == series(want) else OTHER


def placed_libraries(host: OnHost) -> FoundValues:
    """The values of a layer that is a library: its directories, and environments that have it as a package."""
    for place, version, *_ in host.all("library"):
        yield place, version
    for package in host.packages:
        yield package.environment, f"{package.version} ({package.name})"
