"""Groups the checks of a host into units that run in parallel. The checks of one unit run in order. No I/O.

The checks of one standard file form a unit, since they share the results of their fixtures. A check with the marker
``beside`` is a unit of its own. All other checks of a site form one unit. A check with the marker ``alone`` disturbs
other checks, and runs after all units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ALONE, BESIDE = "alone", "beside"
MARKS = {
    ALONE: "disturbs other checks of the host, so no other check runs at the same time",
    BESIDE: "may run in parallel with other checks of its file, or of the site",
}
#: maximum number of units that run at once on a host (our choice)
MOST_PER_HOST = 4
#: maximum number of units that run at once on all hosts (our choice); each unit takes 15 MB of memory
MOST_LANES = 32

Unit = tuple[int, ...]  #: positions of a unit's checks in the list of all checks of a host


@dataclass(frozen=True, slots=True)
class PlacedCheck:
    """The file of a check, whether the file is one of Hostwright's standard files, and the check's markers."""

    file: Path
    standard: bool
    marks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostUnits:
    """The units of a host's checks in starting order (``side_by_side``), and the checks to run ``alone`` afterwards."""

    side_by_side: tuple[Unit, ...]
    alone: Unit


def units_of(checks: Sequence[PlacedCheck]) -> HostUnits:
    """Group the checks of a host into units. Units of the last file start first, because they take longer.

    >>> base, motd = Path("test_base.py"), Path("test_motd.py")
    >>> marked = PlacedCheck(base, True, frozenset({BESIDE}))
    >>> units_of([PlacedCheck(base, True), marked, PlacedCheck(base, True), PlacedCheck(motd, True)])
    HostUnits(side_by_side=((3,), (0, 2), (1,)), alone=())
    """
    alone = tuple(number for number, check in enumerate(checks) if ALONE in check.marks)
    rest = [number for number in range(len(checks)) if number not in alone]
    own = tuple(number for number in rest if not checks[number].standard and BESIDE not in checks[number].marks)
    files = reversed(dict.fromkeys(checks[number].file for number in rest))
    units = [own, *(unit for file in files for unit in _of_file(file, checks, [n for n in rest if n not in own]))]
    return HostUnits(tuple(filter(None, units)), alone)


def _of_file(file: Path, checks: Sequence[PlacedCheck], numbers: Iterable[int]) -> Iterable[Unit]:
    here = [number for number in numbers if checks[number].file == file]
    yield tuple(number for number in here if BESIDE not in checks[number].marks)
    yield from ((number,) for number in here if BESIDE in checks[number].marks)


def lanes_for(hosts: int, units: HostUnits) -> int:
    """Return the number of units that run at once on each host, at least 1, in a run with ``hosts`` hosts.

    >>> units = HostUnits(tuple((number,) for number in range(9)), ())
    >>> [lanes_for(hosts, units) for hosts in (1, 8, 16, 1000)]
    [4, 4, 2, 1]
    """
    return max(1, min(MOST_PER_HOST, MOST_LANES // max(1, hosts), len(units.side_by_side)))
