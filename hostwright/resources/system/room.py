"""Requirement of disk space for software that is not installed yet. A host with all software may be full."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from hostwright.common.quoting import sh_file
from hostwright.common.text import shown_bytes
from hostwright.plan.host.jobs import WORK_BYTES, WORK_DIRS
from hostwright.plan.host.locks import STATE_DIR
from hostwright.plan.model import Facts, Probe, Refusal, Resource
from hostwright.stack.stack import BOOT, WORK, Share

GB = 1_000_000_000
RULE = "free-disk"  #: name of the rule that refuses a host with too little disk space
UNUSABLE = "directories"  #: name of the rule that refuses a host with unusable directories
#: average size of installed software in bytes per inode (our estimate from a Python framework)
BYTES_AN_INODE = 100_000
_PACKAGES = "/var/lib/dpkg/info"  #: directory from which dpkg runs maintainer scripts
#: directory that every installation needs → start of the sentence that names the directory
_ALWAYS = {_PACKAGES: "maintainer scripts of packages run from", STATE_DIR: "Hostwright's records go to"}
_NUMBER = re.compile(r"[0-9]{1,18}")


class _Place(NamedTuple):
    directory: str
    there: str
    kind: str
    filesystem: str
    mount: str
    options: frozenset[str]
    free_bytes: int
    inodes: int
    free_inodes: int

    @property
    def executes(self) -> bool:
        return self.kind == "directory" and not {"ro", "noexec"} & self.options


@dataclass(frozen=True, slots=True)
class FreeSpace(Resource):
    r"""Software that is still to be installed has enough disk space and usable directories; else the host is refused.

    The file system of each part's directory must have enough free bytes and inodes for all parts on it. Directories
    must be writable, and directories for programs must not be mounted noexec. A part counts as installed if its
    ``unless`` path exists.

    >>> space = FreeSpace(10 * GB, (Share("the tool", "/opt/tool/bin", "/opt", 80),))
    >>> row = "/opt\t/opt\tdirectory\t8:1\t/\trw,relatime\t1000000\t600000\t500000\n"
    >>> print(plan_text(space, {"findmnt": row}))
    ! free disk: / has 1.0 GB free and 8.0 GB are needed → enough for what is missing
      refused: too little disk for the tool: / has 1.0 GB free and 8.0 GB are needed; free some or enlarge it
    >>> print(plan_text(space, {"findmnt": row.replace("rw", "ro")}))
    ! directories: / is mounted read-only → directories that can take the tool
      refused: / is mounted read-only, and the tool goes to /opt: mount -o remount,rw / (and in /etc/fstab)
    """

    KIND: ClassVar = "free-space"

    total_bytes: int  #: number of bytes that all shares together need on a new host
    #: parts of the software, each with a percentage of ``total_bytes`` and a path that the installation creates
    shares: tuple[Share, ...]

    def probes(self) -> tuple[Probe, ...]:
        named = {share.directory for share in self.shares} - {WORK}
        directories = (*sorted(named.union(_ALWAYS)), *WORK_DIRS)
        paths = tuple(sorted({share.unless for share in self.shares}))
        return (Probe(sh_file(__file__, "sh/room.sh", directories=directories, paths=paths), root=True, shared=True),)

    def plan(self, facts: Facts) -> Refusal | None:
        rows = [line.split("\t") for line in facts[self.probes()[0]].text.splitlines()]
        places = {row[0]: place for row in rows if (place := _place(row))}
        installed = {row[1] for row in rows if row[0] == "there" and len(row) == 2}
        due = [share for share in self.shares if share.unless not in installed]
        if not due:
            return None
        if work := _work(places):
            places[WORK] = work
        unusable: dict[str, str] = {}
        for have, sentence in _unusable(due, places):
            unusable.setdefault(have, sentence)
        parts = ", ".join(dict.fromkeys(share.part for share in due))
        if unusable:
            have, want = "; ".join(unusable), f"directories that can take {parts}"
            return Refusal("directories", have, want, UNUSABLE, "; ".join(unusable.values()))
        initramfs = next((int(row[1]) for row in rows if row[0] == "initramfs" and _NUMBER.fullmatch(row[-1])), 0)
        short = "; ".join(self._short(due, places, initramfs))
        if not short:
            return None
        sentence = f"too little disk for {parts}: {short}; free some or enlarge it"
        return Refusal("free disk", short, "enough for what is missing", RULE, sentence)

    def removal(self) -> tuple[Resource, ...]:
        return ()

    def _short(self, due: list[Share], places: Mapping[str, _Place], initramfs: int) -> Iterator[str]:
        needed: dict[str, int] = {}
        on: dict[str, _Place] = {}
        for share in due:
            if (place := places.get(share.directory)) and place.free_bytes >= 0:
                size = initramfs if share.directory == BOOT else self.total_bytes * share.percent // 100
                needed[place.filesystem] = needed.get(place.filesystem, 0) + size
                on.setdefault(place.filesystem, place)
        for name, place in sorted(on.items(), key=lambda item: item[1].mount):
            need = needed[name]
            if need > place.free_bytes:
                sentence = f"{place.mount} has {shown_bytes(place.free_bytes)} free and {shown_bytes(need)} are needed"
                yield sentence + (_INITRAMFS if place.directory == BOOT else "")
            elif place.inodes and need // BYTES_AN_INODE > place.free_inodes:
                yield f"{place.mount} has {place.free_inodes} inodes free and {need // BYTES_AN_INODE} are needed"


_INITRAMFS = " to write another initramfs (apt-get autoremove --purge removes unneeded kernels)"


def _place(row: list[str]) -> _Place | None:
    if len(row) != 9:
        return None
    free, inodes, free_inodes = (int(word) if _NUMBER.fullmatch(word) else 0 for word in row[6:])
    free_bytes = free * 1024 if _NUMBER.fullmatch(row[6]) else -1
    directory, there, kind, filesystem, mount, options = row[:6]
    able = frozenset(options.split(","))
    return _Place(directory, there, kind, filesystem, mount, able, free_bytes, inodes, free_inodes)


def _work(places: Mapping[str, _Place]) -> _Place | None:
    """Predict from mount options the work directory that ``work.sh`` will choose for installers."""
    able = [place for name in WORK_DIRS if (place := places.get(name)) and place.executes]
    return max(able, key=lambda place: min(place.free_bytes, WORK_BYTES), default=None)


def _unusable(due: list[Share], places: Mapping[str, _Place]) -> Iterator[tuple[str, str]]:
    if any(name in places for name in WORK_DIRS) and WORK not in places:
        tried = ", ".join(sorted({places[name].mount for name in WORK_DIRS if name in places}))
        yield (
            f"programs cannot be executed on {tried}",
            f"programs cannot be executed on {tried}, where installers unpack and run theirs: run mount -o remount,exec"
            " for one of these, and remove noexec in /etc/fstab",
        )
    parts = {share.directory: f"{share.part} goes to" for share in due if share.directory != WORK}
    for name, part in {**_ALWAYS, **parts}.items():
        if (place := places.get(name)) and (found := _in_the_way(place, part)):
            yield found


def _in_the_way(place: _Place, part: str) -> tuple[str, str] | None:
    where = f"and {part} {place.directory}"
    if place.kind != "directory":
        what = "is a broken link" if place.kind == "broken link" else "is not a directory"
        return f"{place.there} {what}", f"{place.there} {what}, {where}: move it aside"
    if "ro" in place.options:
        have, remount = "is mounted read-only", "rw"
    elif "noexec" in place.options and _runs(place.directory):
        have, remount = "is mounted noexec", "exec"
    else:
        return None
    have = f"{place.mount} {have}"
    return have, f"{have}, {where}: mount -o remount,{remount} {place.mount} (and in /etc/fstab)"


def _runs(directory: str) -> bool:
    return directory == _PACKAGES or not directory.startswith(("/var/", BOOT))
