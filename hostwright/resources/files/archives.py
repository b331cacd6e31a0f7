"""Archives unpacked into shared directories, and single files that are copies of an artifact.

A record on the host lists the unpacked files (kind, size, time, path, target of a link). A check is one ``find`` that
reports only differences from the record: nothing is hashed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ClassVar

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files import passes
from hostwright.resources.files.archives_gone import (
    LDCONFIG,
    LINE,
    RECORDS,
    SET_ASIDE,
    ArchiveGone,
    Entry,
    SetBack,
    entries,
    keep_aside,
    placed_before,
)
from hostwright.resources.files.aside import KEEP_ASIDE, kept_aside
from hostwright.resources.files.paths import ABSENT, COMPILED_REMOVED, few, stat_probe
from hostwright.resources.files.paths_gone import Original
from hostwright.resources.originals import keep_original, made_directory
from hostwright.resources.packages.packages import DPKG_LOCK
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import host_path


def _describe(entry: Entry | None) -> str:
    if entry is None:
        return ABSENT
    return f"link to {entry.target}" if entry.is_link else f"file of {entry.size} bytes"


def _differs(wanted: Entry, entry: Entry | None) -> str:
    words = _describe(entry)
    return f"{words}, written since" if words == _describe(wanted) else words


@dataclass(frozen=True, slots=True)
class Part:
    """A directory of an archive, and the directory on the host that receives its files and links."""

    inside: str  #: path of the directory in the archive
    into: str  #: path of the directory on the host
    deep: bool = False  #: whether to include all subdirectories. No other files may then be in ``into``.


@dataclass(frozen=True, slots=True)
class ArchiveUnpacked(Resource):
    """The files and links of an archive are in shared directories, exactly as the archive has them.

    Readers never find a partial file. Files that only an earlier version had are removed. Another owner's file at the
    same path is kept in ``/var/lib/hostwright/set-aside``.

    A damaged file is replaced alone; without a record all files are placed again. A different file that somebody put in
    the place of a recorded file is kept in ``/opt/hostwright/set-aside``.

    When the role is removed, the recorded files are removed and the files in ``/var/lib/hostwright/set-aside`` are
    moved back.

    >>> tool = Artifact(name="tool", file="tool-1.2.tar.xz")
    >>> parts = (Part("tool-1.2/lib", "/usr/local/lib"),)
    >>> print(plan_text(ArchiveUnpacked("tool", "1.2", tool, parts, "/usr/local/.tool.hostwright-new")))
    ~ files of tool 1.2: no record of its files → 1.2
    """

    KIND: ClassVar = "archive-unpacked"

    name: str  #: name of the record on the host. A later archive with this name replaces the installed files.
    version: str  #: version of the archive in plans and in the record
    artifact: Artifact  #: archive in a format that ``tar`` unpacks
    parts: tuple[Part, ...]  #: directories of the archive to install on the host
    scratch: str  #: temporary directory for unpacking, on the filesystem of all parts

    @property
    def record(self) -> str:
        """Path on the host of the list of unpacked files."""
        return f"{RECORDS}/{self.name}"

    @property
    def _seal(self) -> str:
        return f"{self.version} {host_path(self.artifact)}"

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh_file(__file__, "sh/unpacked.sh", record=self.record, line=LINE), shared=True),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        seal = answer.text.partition("\n")[0]
        known = answer.ok and not answer.truncated
        wrong, present = (entries(answer.text, sign) if known else {} for sign in "<>")
        theirs = [path for path, entry in present.items() if entry.has_content]
        if not known or seal != self._seal:
            have = seal.partition(" ")[0] if answer.ok and seal else "no record of its files"
            if have == self.version:
                have = f"{have} of another archive" if seal != self._seal else f"{have}, its record unreadable"
            keep = [sh("keep_aside %s %s", path, self._unpacked(PurePosixPath(path))) for path in theirs]
            return self._change(have, self.version, self._unpack([*keep, *self._place_all()]), theirs=theirs)
        if not wrong:
            return None
        files = [entry for entry in wrong.values() if not entry.is_link]
        have = few([f"{path}: {_differs(wrong[path], present.get(path))}" for path in wrong])
        script = [keep_aside(wrong[path]) for path in theirs if wrong[path].is_link]
        script += [self._unpack(self._place(files, theirs))] if files else []
        script += [_relink(entry) for entry in wrong.values() if entry.is_link]
        want = few([*map(_describe, wrong.values())])
        return self._change(have, want, "\n".join(script), fetch=bool(files), theirs=theirs)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        answer = facts[self.probes()[0]]
        seal = answer.text.partition("\n")[0] if answer.ok else ""
        version, planned = seal.partition(" ")[0], self.plan(facts)
        flaw = planned.have if planned and version == self.version else ""
        artifact = self.artifact if seal == self._seal else None
        return (Software("archive", self.artifact.name, version, self.version, flaw, artifact, brought=True),)

    def removal(self) -> tuple[Resource, ...]:
        directories = tuple(part.into for part in self.parts)
        trees = tuple(part.into for part in self.parts if part.deep)
        shared = (part.into for part in self.parts if not part.deep)
        return (ArchiveGone(self.name, directories, self.scratch, trees), *map(SetBack, shared))

    def _change(self, have: str, want: str, script: str, *, fetch: bool = True, theirs: Sequence[str] = ()) -> Change:
        artifacts, warnings = (self.artifact.name,) if fetch else (), kept_aside(self.name, theirs)
        what = f"files of {self.name} {self.version}"
        script = (KEEP_ASIDE if theirs else "") + script
        return Change(what, have, want, (Step(script),), artifacts=artifacts, warnings=warnings)

    def _unpack(self, place: list[str]) -> str:
        return "\n".join(
            [
                # `mkdir -p` of the scratch directory could create a parent of `part.into` without a record
                *(made_directory(part.into) for part in self.parts),
                sh("rm -rf -- %s", self.scratch),
                sh("mkdir -p -- %s %s", self.scratch, RECORDS),
                sh("tar -xf %s -C %s --no-same-owner", host_path(self.artifact), self.scratch),
                sh("chmod -R u+w,a+rX -- %s", self.scratch),
                *place,
                sh("rm -rf -- %s", self.scratch),
            ]
        )

    def _place_all(self) -> list[str]:
        new, mark = f"{self.record}.new", placed_before(self.name)
        lines = [sh("printf '%%s\\n' %s > %s", self._seal, new)]
        moves = []
        for part in self.parts:
            inside = f"{self.scratch}/{part.inside}"
            line = LINE.replace("%p", f"{part.into.replace('%', '%%')}/%P")
            depth = "" if part.deep else "-maxdepth 1 "
            lines.append(sh(f"find %s -mindepth 1 {depth}! -type d -printf %s >> %s", inside, line, new))
            moves.append(sh("mkdir -p -- %s", part.into))
            if part.deep:  # `cp -al` makes hard links in place of the present files
                # Python would use an old .pyc file if the new source had the same size and time
                moves.append(sh(COMPILED_REMOVED, part.into))
                moves.append(sh("cp -al --remove-destination -T -- %s %s", inside, part.into))
                continue
            values = {"inside": inside, "into": part.into, "record": self.record, "aside": SET_ASIDE, "mark": mark}
            lines.append(sh_file(__file__, "sh/keep_foreign.sh", **values).rstrip("\n"))
            # a link's target must exist before the link, so files are moved first
            move = "find %s -maxdepth 1 -type %s -exec mv -f -t %s -- {} +"
            moves += [sh(move, inside, kind, part.into) for kind in "fl"]
        gone = sh("if [ -e %s ]; then sed 1d %s | cut -f4 | sort > %s.had", self.record, self.record, new)
        gone += sh("; sed 1d %s | cut -f4 | sort | comm -23 %s.had - | xargs -r -d '\\n' rm -f --", new, new)
        gone += sh("; rm -f -- %s.had; fi", new)
        lines.append(sh("mkdir -p -m 700 -- %s %s", *PurePosixPath(mark).parents[1::-1]) + sh("; : >%s", mark))
        return [*lines, *moves, gone, "sync", sh("mv -fT -- %s %s", new, self.record)]

    def _place(self, files: list[Entry], theirs: list[str]) -> list[str]:
        lines = []
        for entry in files:
            path = PurePosixPath(entry.path)
            new = self._unpacked(path)
            lines += [sh("keep_aside %s %s", path, new)] if entry.path in theirs else []
            lines += [sh("mkdir -p -- %s", path.parent), sh("mv -fT -- %s %s", new, path)]
        return lines

    def _unpacked(self, path: PurePosixPath) -> str:
        for part in self.parts:
            if path.parent == PurePosixPath(part.into) or (part.deep and path.is_relative_to(part.into)):
                return f"{self.scratch}/{part.inside}/{path.relative_to(part.into)}"
        return f"{self.scratch}/{path.name}"


def _relink(entry: Entry) -> str:
    path = PurePosixPath(entry.path)
    new = path.parent / f".{path.name}.hostwright-new"
    return sh("mkdir -p -- %s && ln -sfn -- %s %s && mv -fT -- %s %s", path.parent, entry.target, new, new, path)


@dataclass(frozen=True, slots=True)
class NoStrayFiles(Resource):
    """No stray file or link that matches ``names`` is in ``home`` or ``directories``.

    A file is not stray if it matches ``right`` or a package owns it. Stray files are moved to
    ``/var/lib/hostwright/set-aside``. When the role is removed, they are moved back.

    >>> because = "the loader finds it first"
    >>> strays = NoStrayFiles("libtool.so*", "/opt/tool/lib", ("libtool.so.1",), ("/usr/lib",), because)
    >>> print(plan_text(strays, {"dpkg-query": "/usr/lib/libtool.so.0"}))
    ~ other libtool.so*: /usr/lib/libtool.so.0 → moved to /var/lib/hostwright/set-aside (the loader finds it first)
    """

    KIND: ClassVar = "no-stray-files"

    names: str  #: shell pattern that matches the names of the files
    home: str  #: directory in which the wanted files are
    right: tuple[str, ...]  #: shell patterns of file names in ``home`` that are not moved
    directories: tuple[str, ...]  #: additional directories to search without subdirectories
    because: str = field(metadata=NO_IDENTITY)  #: reason in the plan for moving the files

    def probes(self) -> tuple[Probe, ...]:
        right = tuple(f"{self.home}/{name}" for name in self.right)
        values = {"directories": (self.home, *self.directories), "names": self.names, "right": right}
        return (Probe(sh_file(__file__, "sh/strays.sh", **values), shared=True),)

    def plan(self, facts: Facts) -> Change | None:
        strays = [PurePosixPath(line) for line in facts[self.probes()[0]].text.splitlines()]
        if not strays:
            return None
        return Change(
            f"other {self.names}",
            ", ".join(str(path) for path in strays),
            f"moved to {SET_ASIDE} ({self.because})",
            (Step("\n".join([*map(_set_aside, strays), LDCONFIG]), DPKG_LOCK),),
        )

    def removal(self) -> tuple[Resource, ...]:
        return tuple(map(SetBack, (self.home, *self.directories)))


def _set_aside(path: PurePosixPath) -> str:
    aside = f"{SET_ASIDE}{path}"
    move = sh("mkdir -p -- %s && mv -fT --backup=numbered -- %s %s", PurePosixPath(aside).parent, path, aside)
    return sh("if [ -e %s ] || [ -L %s ]; then ", path, path) + f"{move}; fi"


@dataclass(frozen=True, slots=True)
class Delivered(Resource):
    """A file at a path is a byte-for-byte copy of an artifact of the stack, owned by root.

    The stack must pin the artifact's SHA-256. When the role is removed, the former file is restored.

    >>> tool = Artifact(name="tool", file="tool-1.2", sha256="0" * 64)
    >>> print(plan_text(Delivered("/usr/local/bin/tool", tool, mode="755")))
    ~ file /usr/local/bin/tool: absent → tool-1.2, 755 root:root
    """

    path: str  #: path of the file
    artifact: Artifact  #: artifact of the stack that has a SHA-256
    mode: str = "644"  #: permissions of the file in octal digits

    def probes(self) -> tuple[Probe, ...]:
        digest = self.artifact.sha256
        part = passes.has_sum(self.path, digest) if digest else None
        return (stat_probe(self.path), Probe(sh("sha256sum < %s", self.path), root=True, part=part))

    def plan(self, facts: Facts) -> Change | None:
        stat, digest = (facts[probe] for probe in self.probes())
        want_stat = f"regular file|{self.mode}|root:root"
        same = digest.ok and digest.strip().partition(" ")[0] == self.artifact.sha256
        if same and stat.strip() == want_stat:
            return None
        new = f"{self.path}.hostwright-new"
        script = "\n".join(
            [
                keep_original(self.path),
                sh("install -D -m %s -o root -g root -- %s %s", self.mode, host_path(self.artifact), new),
                sh("sync -- %s", new),
                sh("mv -fT -- %s %s", new, self.path),
            ]
        )
        have = ABSENT if not stat.ok else "other text" if not same else stat.strip().replace("|", " ")
        want = f"{self.artifact.file}, {self.mode} root:root"
        return Change(f"file {self.path}", have, want, (Step(script),), artifacts=(self.artifact.name,))

    def software(self, facts: Facts) -> tuple[Software, ...]:
        answer = facts[self.probes()[1]]
        digest, wanted = answer.strip()[:64] if answer.ok else "", self.artifact.sha256 or ""
        artifact = self.artifact if digest == wanted else None
        return (Software("file", self.artifact.file, digest[:12], wanted[:12], "", artifact, (digest,), brought=True),)

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path, ours=f"file {self.artifact.sha256}"),)
