"""Archives whose files lie in directories that others use too, and single files that are an artifact, byte for byte.

What an archive left on a host is recorded there, file by file (kind, size, time, path, target of a link), after
everything else. Asking whether it is still so is one ``find``: no gigabyte is ever hashed to see that nothing changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ClassVar

from hostwright.common.quoting import sh, words
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.archives_gone import LDCONFIG, RECORDS, SET_ASIDE, ArchiveGone, SetBack
from hostwright.resources.files.paths import ABSENT, few, stat_probe
from hostwright.resources.files.paths_gone import Original
from hostwright.resources.originals import keep_original, made_directory
from hostwright.resources.packages.packages import DPKG_LOCK
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import host_path

#: In ``$inside``, unpacked: what lies in the place of one of these files or links in ``$into``, is another one, and is
#: not named by the record before. A copy of that goes below ``$aside``, a hard link where it can be one.
_KEEP_FOREIGN = """\
same() {
  if [ -L "$1" ] || [ -L "$2" ]; then [ "$(readlink -- "$1")" = "$(readlink -- "$2")" ]; else cmp -s -- "$1" "$2"; fi
}
find "$inside" -mindepth 1 -maxdepth 1 ! -type d -printf '%P\\n' | while read -r name; do
  path=$into/$name
  if [ ! -L "$path" ] && [ ! -f "$path" ]; then continue; fi
  if [ -e "$record" ] && sed 1d "$record" | cut -f4 | grep -qxF -e "$path"; then continue; fi
  if same "$path" "$inside/$name"; then continue; fi
  mkdir -p -- "$aside$into"
  cp -alT --backup=numbered -- "$path" "$aside$path" 2>/dev/null ||
    cp -aT --backup=numbered -- "$path" "$aside$path"
done"""


def _line(path: str) -> str:
    """``find``'s format of one line of a record; ``path`` is the format of the path in it."""
    return f"%y\\t%s\\t%T@\\t{path}\\t%l\\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or link of a record. A link's size and time say nothing, so they are left out of comparisons."""

    kind: str
    size: str
    time: str
    path: str
    target: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.kind == "l"

    def same(self, other: Entry | None) -> bool:
        """Whether ``other`` is what this entry says."""
        if other is None or other.kind != self.kind:
            return False
        return self.target == other.target if self.is_link else (self.size, self.time) == (other.size, other.time)


def entries(text: str) -> dict[str, Entry]:
    """The entries of a record or of its ``find``, by path; lines that are none are passed over."""
    rows = (line.split("\t") for line in text.splitlines())
    return {row[3]: Entry(*row) for row in rows if len(row) == 5}


def _describe(entry: Entry | None) -> str:
    """An entry in a few words, for the plan."""
    if entry is None:
        return ABSENT
    return f"link to {entry.target}" if entry.is_link else f"file of {entry.size} bytes"


@dataclass(frozen=True, slots=True)
class Part:
    """A flat directory of an archive, and the directory on the host that its files and links go to."""

    inside: str
    into: str


@dataclass(frozen=True, slots=True)
class ArchiveUnpacked:
    """The files and links of an archive's directories, each link as a link, in directories shared with others.

    The archive is unpacked into ``scratch``, which must be on the filesystem of all parts, and every file is renamed to
    its place, so none is ever half there. Files of an earlier version that this one does not have go away with it.
    A single damaged file or link is mended alone; without a record nobody knows the right bytes, so all are put anew.
    A file of others in the place of one of ours is kept in ``/var/lib/hostwright/set-aside``.
    """

    KIND: ClassVar = "archive-unpacked"

    name: str
    version: str
    artifact: Artifact
    parts: tuple[Part, ...]
    scratch: str

    @property
    def record(self) -> str:
        """The record's path on the host."""
        return f"{RECORDS}/{self.name}"

    @property
    def _seal(self) -> str:
        return f"{self.version} {host_path(self.artifact)}"

    def probes(self) -> tuple[Probe, ...]:
        listing = sh('find "$@" -maxdepth 0 -printf %s', _line("%p"))
        return (
            Probe(sh("cat -- %s", self.record)),
            Probe(sh("sed 1d %s | cut -f4 | xargs -r -d '\\n' sh -c %s find", self.record, listing)),
        )

    def plan(self, facts: Facts) -> Change | None:
        record, listing = (facts[probe] for probe in self.probes())
        seal, _, rest = record.text.partition("\n")
        wanted, found = entries(rest), entries(listing.text)
        if not record.ok or seal != self._seal or not wanted:
            have = seal.partition(" ")[0] if record.ok and seal else "no record of its files"
            return self._change(have, self.version, self._unpack(self._place_all()))
        wrong = [entry for path, entry in wanted.items() if not entry.same(found.get(path))]
        if not wrong:
            return None
        files = [entry for entry in wrong if not entry.is_link]
        have = few([f"{entry.path}: {_describe(found.get(entry.path))}" for entry in wrong])
        script = [self._unpack(self._place(files))] if files else []
        script += [_relink(entry) for entry in wrong if entry.is_link]
        return self._change(have, few([_describe(entry) for entry in wrong]), "\n".join(script), fetch=bool(files))

    def removal(self) -> tuple[Resource, ...]:
        directories = tuple(part.into for part in self.parts)
        return (ArchiveGone(self.name, directories, self.scratch), *map(SetBack, directories))

    def _change(self, have: str, want: str, script: str, *, fetch: bool = True) -> Change:
        artifacts = (self.artifact.name,) if fetch else ()
        return Change(f"files of {self.name} {self.version}", have, want, (Step(script),), artifacts=artifacts)

    def _unpack(self, place: list[str]) -> str:
        return "\n".join(
            [
                sh("rm -rf -- %s", self.scratch),
                sh("mkdir -p -- %s %s", self.scratch, RECORDS),
                sh("tar -xf %s -C %s --no-same-owner", host_path(self.artifact), self.scratch),
                sh("chmod -R u+w,a+rX -- %s", self.scratch),
                *place,
                sh("rm -rf -- %s", self.scratch),
            ]
        )

    def _place_all(self) -> list[str]:
        new = f"{self.record}.new"
        lines = [sh("printf '%%s\\n' %s > %s", self._seal, new)]
        moves = []
        for part in self.parts:
            inside = f"{self.scratch}/{part.inside}"
            line = _line(f"{part.into.replace('%', '%%')}/%P")
            lines.append(sh("find %s -mindepth 1 -maxdepth 1 ! -type d -printf %s >> %s", inside, line, new))
            lines.append(sh("inside=%s; into=%s; record=%s; aside=%s", inside, part.into, self.record, SET_ASIDE))
            lines.append(_KEEP_FOREIGN)
            moves += [made_directory(part.into), sh("mkdir -p -- %s", part.into)]
            # Files before the links that name them: a reader never follows a link into nothing.
            move = "find %s -maxdepth 1 -type %s -exec mv -f -t %s -- {} +"
            moves += [sh(move, inside, kind, part.into) for kind in "fl"]
        gone = sh("if [ -e %s ]; then sed 1d %s | cut -f4 | sort > %s.had", self.record, self.record, new)
        gone += sh("; sed 1d %s | cut -f4 | sort | comm -23 %s.had - | xargs -r -d '\\n' rm -f --", new, new)
        gone += sh("; rm -f -- %s.had; fi", new)
        return [*lines, *moves, gone, "sync", sh("mv -fT -- %s %s", new, self.record)]

    def _place(self, files: list[Entry]) -> list[str]:
        inside = {part.into: f"{self.scratch}/{part.inside}" for part in self.parts}
        lines = []
        for entry in files:
            path = PurePosixPath(entry.path)
            source = f"{inside.get(str(path.parent), self.scratch)}/{path.name}"
            lines += [sh("mkdir -p -- %s", path.parent), sh("mv -fT -- %s %s", source, path)]
        return lines


def _relink(entry: Entry) -> str:
    path = PurePosixPath(entry.path)
    new = path.parent / f".{path.name}.hostwright-new"
    return sh("ln -sfn -- %s %s && mv -fT -- %s %s", entry.target, new, new, path)


@dataclass(frozen=True, slots=True)
class NoStrayFiles:
    """No file or link with such a name in these directories, unless a package owns it.

    In ``home`` the names that match ``right`` are left alone. What is found is moved to
    ``/var/lib/hostwright/set-aside``, never deleted: whoever put it there may want it back.
    """

    KIND: ClassVar = "no-stray-files"

    names: str  #: a shell pattern
    home: str
    right: tuple[str, ...]  #: shell patterns
    directories: tuple[str, ...]
    because: str = field(metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        find = f"find {words((self.home, *self.directories))} -maxdepth 1 " + sh("-name %s ! -type d", self.names)
        for name in self.right:  # dpkg takes 40 ms a question: it is asked about what is left only
            find += sh(" ! -path %s", f"{self.home}/{name}")
        alone = 'for f; do dpkg-query -S -- "$f" >&2 || echo "$f"; done'
        return (Probe(f"{find} | " + sh("xargs -r -d '\\n' sh -c %s sh", alone)),)

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
class Delivered:
    """A file that is an artifact, byte for byte. The artifact must be pinned by its sha256."""

    path: str
    artifact: Artifact
    mode: str = "644"

    def probes(self) -> tuple[Probe, ...]:
        return (stat_probe(self.path), Probe(sh("sha256sum < %s", self.path), root=True))

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

    def removal(self) -> tuple[Resource, ...]:
        return (Original(self.path, ours=f"file {self.artifact.sha256}"),)
