"""The control groups of the hosts: one per host in each hierarchy, which also tells which process belongs to which
host.

A process stays in its host's group whatever it becomes, so "is it running" and "kill all of it" need no process ids on
disk, and a reused id cannot be mistaken for a host.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from hostwright.common.errors import LabError
from lab.waiting import await_that

_LIMITING = {"cpu", "cpuset", "io", "memory", "pids"}
_LAST_RESORT_S = 20.0  # a killed process leaves at once, unless it hangs in the kernel


def hierarchies() -> list[Path]:
    """Return the mount points of the machine's control group hierarchies, v1 and v2."""
    points = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.split()[0] in ("cgroup", "cgroup2"):
            points.append(Path(fields.split()[4]))
    if not points:
        raise LabError("no control group hierarchy is mounted on this machine; mount /sys/fs/cgroup and try again")
    return points


def create(group: str) -> list[Path]:
    """Make the group in each hierarchy and return the files into which its first process writes its id."""
    entries = []
    for hierarchy in hierarchies():
        directory = hierarchy
        for part in Path(group).parts:
            parent, directory = directory, directory / part
            _hand_down(parent)
            directory.mkdir(exist_ok=True)
            _inherit_cpuset(parent, directory)
        entries.append(directory / "cgroup.procs")
    return entries


def _hand_down(parent: Path) -> None:
    """Let the groups below a group of v2 have the controllers that containers are limited by, as far as it has them."""
    control = parent / "cgroup.subtree_control"
    if not control.exists():
        return  # of v1
    given = set(control.read_text().split())
    for controller in set((parent / "cgroup.controllers").read_text().split()) & _LIMITING - given:
        with contextlib.suppress(OSError):  # the parent holds processes, say: the host then says that it has no limits
            control.write_text(f"+{controller}")


def _inherit_cpuset(parent: Path, child: Path) -> None:
    """Copy the CPUs and memory nodes down: a new v1 cpuset is empty, and no process may enter an empty one."""
    for name in ("cpuset.mems", "cpuset.cpus"):
        file = child / name
        if (parent / name).exists() and file.exists() and not file.read_text().strip():
            # v2 also has these files, where empty means "as the parent"; the root of v2 has none to copy from.
            file.write_text((parent / name).read_text())


def processes(group: str) -> set[int]:
    """Return the ids of all processes in the group or below it, in any hierarchy."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        # A group may vanish while we look (os.walk passes over it), and a threaded one has no list of its own.
        for directory, _, _ in os.walk(hierarchy / group):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in Path(directory, "cgroup.procs").read_text().split())
    found.discard(0)  # a process of another process id namespace
    return found


def memory_bytes(group: str) -> int:
    """Return the memory charged to the group; 0 if it is not counted."""
    for hierarchy in hierarchies():
        for name in ("memory.usage_in_bytes", "memory.current"):
            file = hierarchy / group / name
            if file.exists():
                return int(file.read_text())
    return 0


def cpu_s(group: str) -> float:
    """Return the processor time, user and system, of all processes that ever were in the group.

    Raises `LabError` where it is not counted.
    """
    for hierarchy in hierarchies():
        for name, unit, word in (("cpuacct.usage", 1e-9, None), ("cpu.stat", 1e-6, "usage_usec")):
            with contextlib.suppress(OSError):
                if (value := number((hierarchy / group / name).read_text(), word)) is not None:
                    return value * unit
    raise LabError(f"this machine's control groups count no processor time of {group}")


def number(text: str, word: str | None) -> int | None:
    """Return the number of a file that holds only one, or behind ``word`` in a file of lines ``word number``."""
    if word is None:
        return int(text)
    lines = (line.split() for line in text.splitlines())
    return next((int(line[1]) for line in lines if line[:1] == [word]), None)


def limit(group: str, values: Mapping[str, str]) -> None:
    """Write limits of the group by the names of their files, those of v1 and of v2: each hierarchy has its own.

    Raises `LabError` where no hierarchy has any of them.
    """
    places = [(hierarchy / group / name, value) for hierarchy in hierarchies() for name, value in values.items()]
    there = [(file, value) for file, value in places if file.exists()]
    if not there:
        raise LabError(f"this machine's control groups have none of {', '.join(values)}")
    for file, value in there:
        file.write_text(value)


def kill(group: str) -> None:
    """Kill (SIGKILL) every process of the group and wait until all are gone."""

    def gone() -> bool:
        alive = processes(group)
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not alive

    survive = "survive SIGKILL; look at /proc/<id>/stack of them"
    await_that(gone, _LAST_RESORT_S, lambda: f"processes {sorted(processes(group))} of {group} {survive}")


def remove(group: str) -> None:
    """Remove the group, if it exists, and all groups below it; its processes must be gone."""
    for hierarchy in hierarchies():
        for directory, _, _ in os.walk(hierarchy / group, topdown=False):
            with contextlib.suppress(FileNotFoundError):
                Path(directory).rmdir()


def remove_if_empty(group: str) -> None:
    """Remove the group if it is empty: for the groups above a host's."""
    for hierarchy in hierarchies():
        with contextlib.suppress(OSError):
            (hierarchy / group).rmdir()
