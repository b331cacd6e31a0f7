"""The processes that make the checks of one host: several lanes, and one that has the connection which they share.

Each lane takes the next unit of checks when it is done with one. Checks that must run alone have a lane of their own,
which begins when the others have ended. Whoever makes them forks a process for each of its ``tasks`` and closes it;
a process closes what is not its own, so that each sees when the others are gone.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from hostwright.transport import Session
from hostwright.verify.lending import Lender
from hostwright.verify.units import HostUnits, Unit

_NUMBER = struct.Struct("H")  #: of a unit, in the pipe from which lanes take them: a pipe holds 32,000

#: Makes the checks of these units, over the connection at the other end of a pipe; an exit status
Run = Callable[[Iterator[Unit], Connection | None], int]
Task = Callable[[], int]


@dataclass
class CheckProcesses:
    """``tasks``, each for a process of its own. With one lane and nothing beside it, that has its own connection."""

    units: HostUnits
    lanes: int
    run: Run
    connect: Callable[[], Session]
    tasks: list[Task] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open: list[int | Connection] = []
        if self.lanes == 1:
            self.tasks = [lambda: self.run(iter((*self.units.side_by_side, *self._alone())), None)]
            return
        queue = self._queue()
        ended, runs = self._pipe()
        lent: list[Connection] = []
        for _ in range(self.lanes):
            self.tasks.append(self._lane(queue, runs, self._lent(lent)))
        if self.units.alone:
            self.tasks.append(self._last(ended, self._lent(lent)))
        self.tasks.append(self._lender(lent))

    def close(self) -> None:
        """Let go of everything, in the process that has forked the others."""
        self._keep()

    def _alone(self) -> tuple[Unit, ...]:
        return tuple((number,) for number in self.units.alone)

    def _queue(self) -> int:
        """A descriptor from which the numbers of units are read, each once, by whoever comes first."""
        taken, given = self._pipe()
        os.write(given, b"".join(map(_NUMBER.pack, range(len(self.units.side_by_side)))))
        self._open.remove(given)
        os.close(given)
        return taken

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open += ends
        return ends

    def _lent(self, lent: list[Connection]) -> Connection:
        ours, theirs = Pipe()
        self._open += [ours, theirs]
        lent.append(theirs)
        return ours

    def _lane(self, queue: int, runs: int, pipe: Connection) -> Task:
        def lane() -> int:
            self._keep(queue, runs, pipe)
            return self.run(self._taken(queue), pipe)

        return lane

    def _taken(self, queue: int) -> Iterator[Unit]:
        while number := os.read(queue, _NUMBER.size):
            yield self.units.side_by_side[_NUMBER.unpack(number)[0]]

    def _last(self, ended: int, pipe: Connection) -> Task:
        def last() -> int:
            self._keep(ended, pipe)
            os.read(ended, 1)  # nobody writes: it is the end of the last lane that comes
            return self.run(iter(self._alone()), pipe)

        return last

    def _lender(self, lent: list[Connection]) -> Task:
        def lend() -> int:
            self._keep(*lent)
            Lender(self.connect, lent).lend()
            return 0

        return lend

    def _keep(self, *mine: int | Connection) -> None:
        for end in self._open:
            if end not in mine:
                with suppress(OSError):
                    os.close(end) if isinstance(end, int) else end.close()
        self._open = [*mine]
