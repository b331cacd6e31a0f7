"""The controller's processes as a control group: also those that leave their parents, as ssh's masters do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lab import cgroups

ALL = "hostwright-bench"  #: the groups of everything that the benchmark starts are below it
#: Enters the groups, then becomes the command; it costs a millisecond of processor time, the same for all.
_ENTER = 'count=$1; shift; while [ "$count" -gt 0 ]; do echo $$ >"$1"; shift; count=$((count - 1)); done; exec "$@"'
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A group that is made for one command."""

    name: str
    entries: tuple[Path, ...]  #: a process that writes its id into each of these is in the group

    @property
    def cpu_s(self) -> float:
        """User and system time of all that ever was in it."""
        return cgroups.cpu_s(self.name)

    @property
    def entering(self) -> list[str]:
        """Words before those of a command, which then is in the group."""
        return ["/bin/sh", "-c", _ENTER, "bench", str(len(self.entries)), *map(str, self.entries)]

    def pids(self) -> list[int]:
        """The processes in it now."""
        return [int(line) for line in self.entries[0].read_text().split()]

    def memory(self) -> tuple[int, int]:
        """The resident bytes of its processes together, and how many these are; what they share counts for each."""
        pages, pids = 0, self.pids()
        for pid in pids:
            with suppress(OSError):  # it has ended
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * PAGE_BYTES, len(pids)


@contextmanager
def control_group(name: str) -> Iterator[ControlGroup]:
    """A new group; whatever is still in it at the end is killed."""
    path = f"{ALL}/{name}"
    entries = tuple(cgroups.create(path))
    try:
        yield ControlGroup(path, entries)
    finally:
        cgroups.kill(path)
        cgroups.remove(path)
        cgroups.remove_if_empty(ALL)


def kill_all() -> None:
    """End what a run that was killed has left running."""
    cgroups.kill(ALL)
    cgroups.remove(ALL)
