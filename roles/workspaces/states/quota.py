"""Disk limits of workspaces' files, set as project quotas of a filesystem that supports them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from hostwright.resources import NO_IDENTITY, Change, Deferred, Facts, Planned, Probe, Refusal, Resource, Step
from hostwright.roles import sh_file, whole

WHAT = "disk quotas"
#: first project number for quotas, and count of numbers. Other programs begin with 1 (Docker on xfs, /etc/projid).
_FIRST, _MANY = 2**24, 2**30


def project_of(directory: str) -> int:
    """Return the number of the quota project for ``directory``, derived from the path."""
    return _FIRST + int.from_bytes(hashlib.sha256(directory.encode()).digest()[:8], "big") % _MANY


@dataclass(frozen=True, slots=True)
class DiskQuotas(Resource):
    """Project quotas limit workspaces' directories below ``directory`` as ``limits`` requires."""

    directory: str
    limits: tuple[tuple[str, int], ...] = ()  #: path of a directory and limit of the directory in KiB
    others: tuple[str, ...] = field(default=(), metadata=NO_IDENTITY)  #: paths of directories without a limit

    @property
    def _probe(self) -> Probe:
        return Probe(sh_file(__file__, "sh/quotas.sh", directory=self.directory), root=True, cap_bytes=1024 * 1024)

    def probes(self) -> tuple[Probe, ...]:
        return (self._probe,)

    def plan(self, facts: Facts) -> Planned | None:
        lines = [line.partition(" ")[::2] for line in facts[self._probe].text.splitlines()]
        place = next((rest.split() for kind, rest in lines if kind == "filesystem"), [])
        want = ", ".join(f"{folder}: {_size(kib)}" for folder, kib in self.limits) or "none"
        if ("end", "") not in lines[-1:]:
            return Deferred(WHAT, "not known", want, "the host reports its quotas") if self.limits else None
        if len(place) != 3 or not {"prjquota", "pquota"} & set(place[2].split(",")):
            return Refusal(WHAT, "not possible", want, "workspace-disk", self._none(place)) if self.limits else None
        if ("tools", "absent") in lines:
            return Deferred(WHAT, "no setquota", want, "the package quota is installed") if self.limits else None
        rows = tuple(_due(lines, (*self.limits, *((folder, 0) for folder in self.others))))
        if not rows:
            return None
        script = sh_file(__file__, "sh/quota.sh", target=place[0], rows=[str(part) for row in rows for part in row])
        text = ", ".join(f"{folder}: {_size(kib) if kib else 'no limit'}" for folder, _, kib in rows)
        return Change(WHAT, "others", text, (Step(script, timeout_s=900),))

    def _none(self, place: Sequence[str]) -> str:
        where = f"{place[0]} ({place[1]})" if len(place) == 3 else "an unknown file system"
        names = ", ".join(folder for folder, _ in self.limits)
        how = {
            "ext4": "make it known with tune2fs -O project,quota while it is not mounted, and mount it with prjquota",
            "xfs": "mount it with prjquota (of the root file system: rootflags=prjquota for the kernel)",
        }.get(place[1] if len(place) == 3 else "", "use ext4 or xfs, mounted with prjquota")
        return (
            f"disk limits the files of {names}, but {self.directory} is on {where}, which is mounted without project"
            f" quotas: {how}, move workspaces_directory to another filesystem, or remove disk from the inventory"
        )

    def removal(self) -> tuple[Resource, ...]:
        """Return the resource that removes the limits and keeps the files."""
        return (DiskQuotas(self.directory, (), (*(folder for folder, _ in self.limits), *self.others)),)


def _due(lines: Sequence[tuple[str, str]], wanted: Sequence[tuple[str, int]]) -> list[tuple[str, int, int]]:
    limits = dict(pair for kind, rest in lines if kind == "limit" if (pair := _numbers(rest)) is not None)
    projects = {
        folder: (whole(number), "P" in flags)
        for kind, rest in lines
        if kind == "project"
        for number, flags, folder in [([*rest.split(None, 2), "", "", ""])[:3]]
    }
    due = []
    for folder, kib in wanted:
        project = project_of(folder)
        placed = not kib or projects.get(folder) == (project, True)
        if limits.get(project, 0) != kib or not placed:
            due.append((folder, project, kib))
    return due


def _numbers(text: str) -> tuple[int, int] | None:
    first, _, second = text.partition(" ")
    numbers = whole(first), whole(second)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _size(kib: int) -> str:
    return f"{kib / 2**20:g} GiB" if kib >= 2**20 else f"{kib / 2**10:g} MiB"
