"""States for the removal of a role: each path is as it was before Hostwright's first change.

On a host that an earlier version provisioned without the record of the host's original state (``originals``), a file is
removed only if its name or its bytes prove that Hostwright wrote it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Answer, Change, Facts, Probe, RemovalState, Step
from hostwright.resources.files.paths import ABSENT, content_probe, unified
from hostwright.resources.originals import FORGET, ORIGIN, kept, made, written

OUR_NAME = "hostwright"


def as_file(content: bytes | str) -> str:
    """Value of ``Original.ours`` for a file with this ``content``."""
    data = content.encode() if isinstance(content, str) else content
    return f"file {hashlib.sha256(data).hexdigest()}"


def as_link(target: str) -> str:
    """Value of ``Original.ours`` for a symbolic link to ``target``."""
    return f"link {target}"


def leftovers(path: str) -> tuple[str, ...]:
    """Paths of files that Hostwright may have left beside ``path``: the new file of an interrupted write, and the
    backup.
    """
    pure = PurePosixPath(path)
    return (f"{pure.parent}/.{pure.name}.hostwright-new", f"{path}.hostwright-new", f"{path}.hostwright-backup")


@dataclass(frozen=True, slots=True)
class Original(RemovalState):
    """A path is as it was before Hostwright's first change: free, or with the former file or link.

    A link that somebody has changed since, and the file of a package that was installed later, are kept. Empty parent
    directories that Hostwright made are removed.
    """

    path: str  #: path of the file or link
    then: tuple[str, ...] = ()  #: commands that put the removal into effect (``systemctl daemon-reload``)
    ours: str = ""  #: encoded file or link that Hostwright wrote, from ``as_file`` or ``as_link``

    @property
    def _is_link(self) -> bool:
        return self.ours.startswith("link ")

    def probes(self) -> tuple[Probe, ...]:
        parent = str(PurePosixPath(self.path).parent)
        look = sh_file(
            __file__,
            "sh/probe.sh",
            path=self.path,
            written=written(self.path),
            kept=kept(self.path),
            made=made(parent),
            ours=self.ours,
            leftovers=leftovers(self.path),
            origin=ORIGIN,
        )
        contents = () if self._is_link else (content_probe(self.path), content_probe(kept(self.path)))
        return (Probe(look, root=True), *contents)

    def plan(self, facts: Facts) -> Change | None:
        words = set(facts[self.probes()[0]].text.split())
        mine, theirs = self._mine(words), self._theirs(words)
        put, want = self._put(words) if mine and not theirs else self._back(words)
        if not mine and not put and not words & {"written", "empty"}:
            return None
        have = ABSENT if not words & {"there", "other"} else "another's" if theirs else "ours" if mine else "there"
        clean = [sh("rm -f -- %s %s %s", *leftovers(self.path)), *self.then] if mine and not theirs else []
        # the removal of another stack may already have restored this path
        due = [sh("[ -e %s ] || exit 0", written(self.path))] if "written" in words else []
        script = "\n".join([*due, FORGET, *put, *clean, sh("forget %s", self.path)])
        diff = self._diff(facts, words) if put else ""
        what = f"{'link' if self._is_link else 'file'} {self.path}"
        return Change(what, have, f"as before: {want}", (Step(script),), diff=diff)

    def _mine(self, words: set[str]) -> bool:
        beyond_doubt = OUR_NAME in self.path or "ours" in words
        return "written" in words or (not words & {"record", "owned"} and "there" in words and beyond_doubt)

    def _theirs(self, words: set[str]) -> bool:
        """Whether somebody else has replaced Hostwright's file or link.

        dpkg may list the path as a package's file although Hostwright's link is still there.
        """
        elsewhere = self._is_link and "there" in words and "ours" not in words
        return elsewhere or "other" in words or ("owned" in words and not words >= {"ours", "aside"})

    def _put(self, words: set[str]) -> tuple[list[str], str]:
        pure = PurePosixPath(self.path)
        if "kept" in words:
            new, copy = f"{pure.parent}/.{pure.name}.hostwright-new", kept(self.path)
            script = [
                sh("mkdir -p -- %s", pure.parent),
                sh("rm -f -- %s; cp -aT -- %s %s; [ -L %s ] || sync -- %s", new, copy, new, new, new),
                sh("mv -fT -- %s %s", new, self.path),
            ]
            return ([] if "same" in words else script), f"the former {'link' if self._is_link else 'file'}"
        back, want = self._back(words - {"there"})
        return [sh("rm -f -- %s", self.path), *back] if "there" in words or back else [], want

    def _back(self, words: set[str]) -> tuple[list[str], str]:
        if words & {"there", "other"}:
            return [], "as it is"
        if "aside" not in words:
            return [], ABSENT
        move = sh('mv -T -- "$(ls -1dtrc -- %s.before-hostwright.* | head -n 1)" %s', self.path, self.path)
        return [move], "the file or directory that was moved aside"

    def _diff(self, facts: Facts, words: set[str]) -> str:
        if self._is_link or "aside" in words:
            return ""
        have, want = (facts[probe] for probe in self.probes()[1:])
        if not _is_text(have) or not _is_text(want):
            return ""
        return unified(self.path, have.text if have.ok else "", want.text if want.ok else "", "before")

    def takes(self) -> frozenset[str]:
        return frozenset({f"file {self.path}"})


def _is_text(answer: Answer) -> bool:
    return not answer.truncated and "\0" not in answer.text and "\N{REPLACEMENT CHARACTER}" not in answer.text


@dataclass(frozen=True, slots=True)
class DirectoryGone(RemovalState):
    """A directory that Hostwright made is removed if it is empty."""

    path: str  #: path of the directory

    def probes(self) -> tuple[Probe, ...]:
        script = '[ -e %s ] && [ -d %s ] && [ -z "$(ls -A -- %s)" ]'
        return (Probe(sh(script, made(self.path), self.path, self.path), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        if not facts[self.probes()[0]].ok:
            return None
        step = Step(FORGET + sh("tidy %s", self.path))
        return Change(f"directory {self.path}", "empty", f"as before: {ABSENT}", (step,))
