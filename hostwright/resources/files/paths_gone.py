"""States of paths from which something of ours was taken away: what was there before is there again.

They read what ``originals`` keeps on the host. Where nothing was written down (a host that was provisioned before there
was such a record), only what is ours beyond doubt goes: what bears our name, or is byte for byte what we write.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from hostwright.common.quoting import sh, words
from hostwright.plan.model import Answer, Change, Facts, Probe, Resource, Step
from hostwright.resources.files.paths import ABSENT, content_probe, unified
from hostwright.resources.originals import FORGET, ORIGIN, kept, made, written

OUR_NAME = "hostwright"


def as_file(content: bytes | str) -> str:
    """A file with this content, as ``Original.ours`` says it."""
    data = content.encode() if isinstance(content, str) else content
    return f"file {hashlib.sha256(data).hexdigest()}"


def as_link(target: str) -> str:
    """A symbolic link to this target, as ``Original.ours`` says it."""
    return f"link {target}"


def leftovers(path: str) -> tuple[str, ...]:
    """Files beside a path that a write of ours that was cut leaves there, and the copies of earlier editions."""
    pure = PurePosixPath(path)
    return (f"{pure.parent}/.{pure.name}.hostwright-new", f"{path}.hostwright-new", f"{path}.hostwright-backup")


#: Words about a path, each on a line of its own; nothing that the host could choose is printed. $1: the path, $2: its
#: mark, $3: its kept copy, $4: the mark of its directory, $5: what ours is, then what may have been left beside it.
_LOOK = f"""\
look() {{
  p=$1 written=$2 kept=$3 made=$4 ours=$5; shift 5
  [ ! -e {ORIGIN}/packages ] || echo record
  [ ! -e "$written" ] || echo written
  if [ -L "$p" ]; then echo there; now="link $(readlink -- "$p")"
  elif [ -f "$p" ]; then echo there; now="file $(sha256sum <"$p" | cut -d ' ' -f 1)"
  elif [ -e "$p" ]; then echo other; now=other
  else now=; fi
  [ -z "$ours" ] || [ "$now" != "$ours" ] || echo ours
  if [ -L "$kept" ]; then echo kept; [ "$now" != "link $(readlink -- "$kept")" ] || echo same
  elif [ -e "$kept" ]; then
    echo kept
    if [ "$(stat -c '%f %u %g %y' -- "$p")" = "$(stat -c '%f %u %g %y' -- "$kept")" ] && cmp -s "$p" "$kept"; then
      echo same
    fi
  elif [ -n "$now" ] && dpkg-query -S -- "$p" >/dev/null 2>&1; then echo owned; fi
  for one; do [ ! -e "$one" ] || echo left; done
  for one in "$p".before-hostwright.*; do if [ -e "$one" ] || [ -L "$one" ]; then echo aside; fi; done
  if [ -e "$made" ] && [ -d "${{p%/*}}" ] && [ -z "$(ls -A -- "${{p%/*}}")" ]; then echo empty; fi
}}
"""


@dataclass(frozen=True, slots=True)
class Original:
    """The path is again what it was before the first change: absent, or the file or link of then.

    ``ours`` (``as_file``, ``as_link``) is what we put there. A link that leads elsewhere by now is somebody else's and
    stays, and so does what a package owns that came later. What had to be moved aside comes back, the oldest first.
    ``then`` are commands that make the host take notice (``systemctl daemon-reload``). Directories above it that were
    made for it go when they are empty.
    """

    path: str
    then: tuple[str, ...] = ()
    ours: str = ""

    @property
    def _is_link(self) -> bool:
        return self.ours.startswith("link ")

    def probes(self) -> tuple[Probe, ...]:
        parent = str(PurePosixPath(self.path).parent)
        arguments = (self.path, written(self.path), kept(self.path), made(parent), self.ours, *leftovers(self.path))
        look = Probe(f"{_LOOK}look {words(arguments)}", root=True)
        contents = () if self._is_link else (content_probe(self.path), content_probe(kept(self.path)))
        return (look, *contents)

    def plan(self, facts: Facts) -> Change | None:
        says = set(facts[self.probes()[0]].text.split())
        mine, theirs = self._mine(says), self._theirs(says)
        put, want = self._put(says) if mine and not theirs else self._back(says)
        if not mine and not put and not says & {"written", "empty"}:
            return None
        have = ABSENT if not says & {"there", "other"} else "another's" if theirs else "ours" if mine else "there"
        clean = [sh("rm -f -- %s %s %s", *leftovers(self.path)), *self.then] if mine and not theirs else []
        # The other edition of this path, of another stack, may have been taken away since the host was looked at.
        due = [sh("[ -e %s ] || exit 0", written(self.path))] if "written" in says else []
        script = "\n".join([*due, FORGET, *put, *clean, sh("forget %s", self.path)])
        diff = self._diff(facts, says) if put else ""
        what = f"{'link' if self._is_link else 'file'} {self.path}"
        return Change(what, have, f"as before: {want}", (Step(script),), diff=diff)

    def _mine(self, says: set[str]) -> bool:
        """Whether it is Hostwright's: by its record, or beyond doubt where there is none."""
        beyond_doubt = OUR_NAME in self.path or "ours" in says
        return "written" in says or (not says & {"record", "owned"} and "there" in says and beyond_doubt)

    def _theirs(self, says: set[str]) -> bool:
        """Whether somebody else has put something of his there since.

        A package owns a path whatever lies there: our link in the place of its file, which was moved aside, is ours.
        """
        elsewhere = self._is_link and "there" in says and "ours" not in says
        return elsewhere or "other" in says or ("owned" in says and not says >= {"ours", "aside"})

    def _put(self, says: set[str]) -> tuple[list[str], str]:
        """Commands that put the former state in the place of ours, and that state in words."""
        pure = PurePosixPath(self.path)
        if "kept" in says:
            new, copy = f"{pure.parent}/.{pure.name}.hostwright-new", kept(self.path)
            script = [
                sh("mkdir -p -- %s", pure.parent),
                sh("rm -f -- %s; cp -aT -- %s %s; [ -L %s ] || sync -- %s", new, copy, new, new, new),
                sh("mv -fT -- %s %s", new, self.path),
            ]
            return ([] if "same" in says else script), f"the {'link' if self._is_link else 'file'} of then"
        back, want = self._back(says - {"there"})
        return [sh("rm -f -- %s", self.path), *back] if "there" in says or back else [], want

    def _back(self, says: set[str]) -> tuple[list[str], str]:
        """Commands that move back what was moved aside, where the path is free."""
        if says & {"there", "other"}:
            return [], "as it is"
        if "aside" not in says:
            return [], ABSENT
        move = sh('mv -T -- "$(ls -1dtrc -- %s.before-hostwright.* | head -n 1)" %s', self.path, self.path)
        return [move], "what was moved aside"

    def _diff(self, facts: Facts, says: set[str]) -> str:
        if self._is_link or "aside" in says:
            return ""
        have, want = (facts[probe] for probe in self.probes()[1:])
        if not _is_text(have) or not _is_text(want):
            return ""
        return unified(self.path, have.text if have.ok else "", want.text if want.ok else "", "before")

    def removal(self) -> tuple[Resource, ...]:
        return ()


def _is_text(answer: Answer) -> bool:
    return not answer.truncated and "\0" not in answer.text and "\N{REPLACEMENT CHARACTER}" not in answer.text


@dataclass(frozen=True, slots=True)
class DirectoryGone:
    """A directory that we made is not there when it is empty."""

    path: str

    def probes(self) -> tuple[Probe, ...]:
        script = '[ -e %s ] && [ -d %s ] && [ -z "$(ls -A -- %s)" ]'
        return (Probe(sh(script, made(self.path), self.path, self.path), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        if not facts[self.probes()[0]].ok:
            return None
        step = Step(FORGET + sh("tidy %s", self.path))
        return Change(f"directory {self.path}", "empty", f"as before: {ABSENT}", (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()
