"""Control groups of the lab's hosts: one per host in each cgroup hierarchy.

A process and its children cannot leave their host's group, so the group identifies a host's processes.
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
_LAST_RESORT_S = 20.0  # seconds to wait for the end of killed processes


def hierarchies() -> list[Path]:
    """Return the mount points of this machine's cgroup hierarchies (v1 and v2)."""
    points = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.split()[0] in ("cgroup", "cgroup2"):
            points.append(Path(fields.split()[4]))
    if not points:
        raise LabError(
            "no cgroup hierarchy is mounted on this machine; mount /sys/fs/cgroup, then run the command again"
        )
    return points


def create(group: str) -> list[Path]:
    """Create ``group`` in each cgroup hierarchy; return its ``cgroup.procs`` files."""
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
    control = parent / "cgroup.subtree_control"
    if not control.exists():
        return
    given = set(control.read_text().split())
    for controller in set((parent / "cgroup.controllers").read_text().split()) & _LIMITING - given:
        # The write fails for example if the parent has processes; the host then reports that no limits are possible.
        with contextlib.suppress(OSError):
            control.write_text(f"+{controller}")


def _inherit_cpuset(parent: Path, child: Path) -> None:
    """Copy CPUs and memory nodes, because no process can enter a cgroup v1 with an empty cpuset."""
    for name in ("cpuset.mems", "cpuset.cpus"):
        file = child / name
        if (parent / name).exists() and file.exists() and not file.read_text().strip():
            # in v2, an empty file means "as the parent", and the root group has no values
            file.write_text((parent / name).read_text())


def processes(group: str) -> set[int]:
    """Return the ids of all processes in ``group`` and its child groups, in any hierarchy."""
    found: set[int] = set()
    for hierarchy in hierarchies():
        # a group may disappear meanwhile, and a threaded group has no readable list of processes
        for directory, _, _ in os.walk(hierarchy / group):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in Path(directory, "cgroup.procs").read_text().split())
    found.discard(0)  # the kernel shows a process of another PID namespace as 0
    return found


def memory_bytes(group: str) -> int:
    """Return the memory charged to ``group`` in bytes; 0 without a memory controller."""
    for hierarchy in hierarchies():
        for name in ("memory.usage_in_bytes", "memory.current"):
            file = hierarchy / group / name
            if file.exists():
                return int(file.read_text())
    return 0


def cpu_s(group: str) -> float:
    """Return the CPU seconds of all current and ended processes in ``group``.

    Raises `LabError` if no hierarchy accounts for CPU time.
    """
    for hierarchy in hierarchies():
        for name, unit, word in (("cpuacct.usage", 1e-9, None), ("cpu.stat", 1e-6, "usage_usec")):
            with contextlib.suppress(OSError):
                if (value := number((hierarchy / group / name).read_text(), word)) is not None:
                    return value * unit
    raise LabError(f"no cgroup hierarchy of this machine counts the CPU time of {group}")


def number(text: str, word: str | None) -> int | None:
    """Return the number in ``text`` or, with ``word``, in the line ``word NUMBER``; ``None`` without such a line."""
    if word is None:
        return int(text)
    lines = (line.split() for line in text.splitlines())
    return next((int(line[1]) for line in lines if line[:1] == [word]), None)


def limit(group: str, values: Mapping[str, str]) -> None:
    """Set limits of ``group``. ``values``: file name of cgroup v1 or v2 → new content.

    Raises `LabError` if none of the files exists.
    """
    places = [(hierarchy / group / name, value) for hierarchy in hierarchies() for name, value in values.items()]
    there = [(file, value) for file, value in places if file.exists()]
    if not there:
        raise LabError(f"no cgroup hierarchy of this machine has any of {', '.join(values)}")
    for file, value in there:
        file.write_text(value)


def kill(group: str) -> None:
    """Kill every process of ``group``, and wait until all have ended."""

    def gone() -> bool:
        alive = processes(group)
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not alive

    survive = "survive SIGKILL; read their /proc/<id>/stack"
    await_that(gone, _LAST_RESORT_S, lambda: f"processes {sorted(processes(group))} of {group} {survive}")


def remove(group: str) -> None:
    """Remove ``group`` and its child groups, which must be empty."""
    for hierarchy in hierarchies():
        for directory, _, _ in os.walk(hierarchy / group, topdown=False):
            with contextlib.suppress(FileNotFoundError):
                Path(directory).rmdir()


def remove_if_empty(group: str) -> None:
    """Remove ``group``, the parent of labs' groups, if the group is empty."""
    for hierarchy in hierarchies():
        with contextlib.suppress(OSError):
            (hierarchy / group).rmdir()
