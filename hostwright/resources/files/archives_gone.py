"""Removal of an archive's files from shared directories. The files that the archive had replaced are moved back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Change, Facts, Probe, RemovalState, Step
from hostwright.resources import originals
from hostwright.resources.files.aside import KEEP_ASIDE, kept_aside
from hostwright.resources.files.paths import ABSENT, COMPILED_REMOVED, few
from hostwright.resources.packages.dpkg import DPKG_LOCK

#: command that updates the loader's cache; needs dpkg's lock, because dpkg's triggers run ldconfig too
LDCONFIG = "/sbin/ldconfig"
RECORDS = "/var/lib/hostwright/unpacked"  #: directory with one record per unpacked archive
SET_ASIDE = "/var/lib/hostwright/set-aside"  #: directory for files of other owners that an unpacked archive replaced

#: pattern of a backup's name by ``mv --backup=numbered``; the oldest backup has the number 1
_NUMBERED = re.compile(r"(?P<path>.+)\.~(?P<number>[0-9]{1,18})~", re.ASCII)

#: format for ``find -printf`` of a line in an archive's record
LINE = "%y\\t%s\\t%T@\\t%p\\t%l\\n"

_FILE_NAME = re.compile(r"(?!\.{1,2}$)[^/\0]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or link of an unpacked archive, in the record or on the host."""

    kind: str
    size: str
    time: str
    path: str
    target: str

    @property
    def is_link(self) -> bool:
        """Whether this is a symbolic link."""
        return self.kind == "l"

    @property
    def has_content(self) -> bool:
        """Whether this is a regular file that is not empty."""
        return self.kind == "f" and self.size != "0"


def entries(text: str, sign: str) -> dict[str, Entry]:
    """Parse the lines of the output ``text`` of ``unpacked.sh`` that start with ``sign``: path → entry."""
    rows = (line[1:].split("\t") for line in text.splitlines() if line.startswith(sign))
    return {row[3]: Entry(*row) for row in rows if len(row) == 5}


def placed_before(name: str) -> str:
    """Path of an empty file that exists if an archive named ``name`` has ever been unpacked on the host."""
    return f"{originals.ORIGIN}/unpacked/{name}"


def keep_aside(entry: Entry) -> str:
    """Command that copies the file at the path of ``entry`` aside, unless the file equals the archive's file."""
    return sh("keep_aside %s %s", entry.path, PurePosixPath(entry.path).parent / entry.target)


@dataclass(frozen=True, slots=True)
class ArchiveGone(RemovalState):
    """The files and links in the record of an unpacked archive are removed, with the record and the scratch directory.

    A different file in the place of a recorded file is kept in ``/opt/hostwright/set-aside``.
    """

    name: str  #: name of the archive, as in ``ArchiveUnpacked``
    #: directories of the archive's files; removed if they are empty and Hostwright made them
    directories: tuple[str, ...]
    scratch: str  #: temporary directory in which the archive was unpacked
    #: directories that contain only files of this archive (``Part.deep``)
    trees: tuple[str, ...] = ()

    @property
    def _records(self) -> tuple[str, str]:
        return f"{RECORDS}/{self.name}", f"{RECORDS}/{self.name}.new"

    @property
    def _named(self) -> str:
        return sh("cat -- %s %s 2>/dev/null | sed '/\\t/!d' | cut -f4 | sort -u", *self._records)

    def probes(self) -> tuple[Probe, ...]:
        lines = [
            sh("for path in %s %s %s; do", *self._records, self.scratch),
            '  if [ -e "$path" ]; then echo "mark=$path"; fi',
            "done",
            f"{self._named} | while read -r path; do",
            '  if [ -e "$path" ] || [ -L "$path" ]; then echo "file=$path"; fi',
            "done; exit 0",
        ]
        changed = Probe(sh_file(__file__, "sh/unpacked.sh", record=self._records[0], line=LINE), shared=True)
        return (Probe("\n".join(lines), root=True, cap_bytes=256 * 1024), changed)

    def plan(self, facts: Facts) -> Change | None:
        named, compared = (facts[probe] for probe in self.probes())
        rows = [line.partition("=")[::2] for line in named.text.splitlines()]
        files = [path for kind, path in rows if kind == "file"]
        marks = [path for kind, path in rows if kind == "mark"]
        if not files and not marks:
            return None
        wrong, present = entries(compared.text, "<"), entries(compared.text, ">")
        theirs = [path for path, entry in present.items() if entry.has_content]
        script = [
            KEEP_ASIDE,
            *(keep_aside(wrong[path]) for path in theirs if path in wrong),
            f"{self._named} | xargs -r -d '\\n' rm -f --",
            sh("rm -rf -- %s", self.scratch),
            *(_emptied(tree) for tree in self.trees),
            originals.FORGET,
            *(sh("tidy %s", directory) for directory in self.directories),
            LDCONFIG,
            sh("rm -f -- %s %s %s %s", *self._records, f"{self._records[1]}.had", placed_before(self.name)),
        ]
        step = Step("\n".join(script), DPKG_LOCK)
        have = few(files or marks)
        return Change(f"files of {self.name}", have, ABSENT, (step,), warnings=kept_aside(self.name, theirs))

    def takes(self) -> frozenset[str]:
        return frozenset({f"archive {self.name}"})


def _emptied(tree: str) -> str:
    cache = sh(COMPILED_REMOVED, tree)
    return sh("if [ -d %s ]; then ", tree) + cache + sh("; find %s -mindepth 1 -type d -empty -delete; fi", tree)


@dataclass(frozen=True, slots=True)
class SetBack(RemovalState):
    """Files that were moved from a directory to ``/var/lib/hostwright/set-aside`` are back, if their path is free.

    Of several files with one name, only the oldest is moved back.
    """

    directory: str  #: directory from which the files were moved

    def probes(self) -> tuple[Probe, ...]:
        aside = f"{SET_ASIDE}{self.directory}"
        lines = [
            sh("[ -d %s ] || exit 0", aside),
            sh("find %s -mindepth 1 -maxdepth 1 ! -type d -printf '%%P\\n' | while read -r name; do", aside),
            sh("  place=%s/${name%%.~[0-9]*~}", self.directory),
            '  if [ ! -e "$place" ] && [ ! -L "$place" ]; then printf \'%s\\n\' "$name"; fi',
            "done; exit 0",
        ]
        return (Probe("\n".join(lines), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        oldest: dict[str, tuple[float, str]] = {}
        for name in facts[self.probes()[0]].text.splitlines():
            match = _NUMBERED.fullmatch(name)
            place, age = (match["path"], float(match["number"])) if match else (name, float("inf"))
            if _FILE_NAME.fullmatch(place) and (place not in oldest or age < oldest[place][0]):
                oldest[place] = (age, name)
        if not oldest:
            return None
        moves = [self._move(name, place) for place, (_, name) in sorted(oldest.items())]
        places = [f"{self.directory}/{place}" for place in sorted(oldest)]
        step = Step("\n".join([sh("mkdir -p -- %s", self.directory), *moves, LDCONFIG]), DPKG_LOCK)
        return Change(f"files moved out of {self.directory}", f"in {SET_ASIDE}", f"back: {few(places)}", (step,))

    def _move(self, name: str, place: str) -> str:
        source, target = f"{SET_ASIDE}{self.directory}/{name}", PurePosixPath(self.directory, place)
        free = sh("if [ ! -e %s ] && [ ! -L %s ] && { [ -e %s ] || [ -L %s ]; }; then ", target, target, source, source)
        return free + sh("mv -T -- %s %s; fi", source, target)
