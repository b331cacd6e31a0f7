"""Which checks of a host run side by side: units, each of them in its own order. Pure.

The checks of one standard file are a unit, since they share what their fixtures made. A check that is marked
``beside`` is one of its own, and those of a site are one together: nobody has said that they do not disturb each other.
A check that is marked ``alone`` disturbs others, and runs after all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ALONE, BESIDE = "alone", "beside"
MARKS = {
    ALONE: "disturbs other checks of the host, so none of them runs meanwhile",
    BESIDE: "may run beside the others of its file, or of the site",
}
MOST_PER_HOST = 4  #: our choice: the longest standard check takes as long as all others on three lanes
MOST_LANES = 32  #: our choice: of all hosts together; each is a process with 15 MB of its own

Unit = tuple[int, ...]  #: the numbers of its checks, among all of the host


@dataclass(frozen=True, slots=True)
class PlacedCheck:
    """Where a check stands: its file, whether that is a standard one, and its marks."""

    file: Path
    standard: bool
    marks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostUnits:
    """``side_by_side`` in the order in which they are begun, and the checks that are ``alone``, in theirs."""

    side_by_side: tuple[Unit, ...]
    alone: Unit


def units_of(checks: Sequence[PlacedCheck]) -> HostUnits:
    """The units of a host's checks. Those of the last file are begun first: a layer's checks take the longer the more
    stands below it.

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
    """How many units of a host run at once in a run over so many hosts; none of many hosts waits for another one.

    >>> units = HostUnits(tuple((number,) for number in range(9)), ())
    >>> [lanes_for(hosts, units) for hosts in (1, 8, 16, 1000)]
    [4, 4, 2, 1]
    """
    return max(1, min(MOST_PER_HOST, MOST_LANES // max(1, hosts), len(units.side_by_side)))
