"""Linux control group for all processes of a command, including those that outlive their parents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lab import cgroups

ALL = "hostwright-bench"  #: name of the control group above all control groups of the benchmark
#: shell script that enters control groups, then executes the command
_ENTER = 'count=$1; shift; while [ "$count" -gt 0 ]; do echo $$ >"$1"; shift; count=$((count - 1)); done; exec "$@"'
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """Linux control group for the processes of one command."""

    name: str
    entries: tuple[Path, ...]  #: files to which a process writes its process id to enter the group

    @property
    def cpu_s(self) -> float:
        """User and system seconds of all current and ended processes in the group."""
        return cgroups.cpu_s(self.name)

    @property
    def entering(self) -> list[str]:
        """First words of a command that runs in the group."""
        return ["/bin/sh", "-c", _ENTER, "bench", str(len(self.entries)), *map(str, self.entries)]

    def pids(self) -> list[int]:
        """Return the process ids in the group."""
        return [int(line) for line in self.entries[0].read_text().split()]

    def memory(self) -> tuple[int, int]:
        """Return the resident bytes and the number of all processes. Shared pages count once per process."""
        pages, pids = 0, self.pids()
        for pid in pids:
            with suppress(OSError):  # the process may have ended meanwhile
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * PAGE_BYTES, len(pids)


@contextmanager
def control_group(name: str) -> Iterator[ControlGroup]:
    """Create a control group, and kill the group's processes at the end of the context."""
    path = f"{ALL}/{name}"
    entries = tuple(cgroups.create(path))
    try:
        yield ControlGroup(path, entries)
    finally:
        cgroups.kill(path)
        cgroups.remove(path)
        cgroups.remove_if_empty(ALL)


def kill_all() -> None:
    """Kill the processes of an interrupted benchmark, and remove its control groups."""
    cgroups.kill(ALL)
    cgroups.remove(ALL)
