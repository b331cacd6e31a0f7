"""A Python environment of ours taken away, with every venv that was built under its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from hostwright.common.quoting import sh
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.resources import originals
from hostwright.resources.files.paths import ABSENT, few

#: What it does to those who run a program of it.
TAKES = "removes the environment that jobs run from"

#: ``pid name`` of the processes that run a program of one of these directories, or have one of its libraries open.
#: A venv's Python is a link to the system's, so the program's own file says nothing.
_USERS = r"""
for pid in $(grep -lzEe "^($places)/" /proc/[0-9]*/cmdline; grep -lFe "$folder" /proc/[0-9]*/maps); do
  pid=${pid#/proc/}; echo "${pid%%/*}"
done | sort -un | while read -r pid; do read -r name <"/proc/$pid/comm" && echo "user=$name ($pid)"; done
"""


@dataclass(frozen=True, slots=True)
class VenvGone:
    """No link of ours at ``path``, and none of the venvs ``NAME-pyX.Y-KEY`` below ``homes``.

    A link of others stays. What was in the way of our link, moved aside or kept, comes back. Where a program runs from
    one of the venvs, the change disturbs.
    """

    path: str  #: of the link that people use
    homes: str  #: the directory of all venvs
    name: str  #: with which the names of this one's venvs begin

    @property
    def _pattern(self) -> str:
        """The shell pattern of the venvs' directories, and of what pip unpacked beside them."""
        return sh("%s-py3.*-????????????", f"{self.homes}/{self.name}")

    def probes(self) -> tuple[Probe, ...]:
        homes = f"{self.homes}/{self.name}-py3."
        places = "|".join((re.escape(self.path), f"{re.escape(homes)}[^/]*"))
        lines = [
            sh("link=%s; free=yes; case $(readlink -- %s) in", self.path, self.path),
            sh("  %s/*) echo ours= ;;", self.homes),
            '  *) if [ -e "$link" ] || [ -L "$link" ]; then free=; fi ;;',
            "esac",
            f"for home in {self._pattern} {self._pattern}.wheels; do",
            '  if [ -d "$home" ]; then echo "home=$home"; fi',
            "done",
            sh('for old in "$link".before-hostwright.* %s; do', originals.kept(self.path)),
            '  if [ -n "$free" ] && { [ -e "$old" ] || [ -L "$old" ]; }; then echo aside=; break; fi',
            "done",
            sh('if [ -d %s ] && [ -z "$(ls -A -- %s)" ]; then echo empty=; fi', self.homes, self.homes),
            sh("places=%s; folder=%s", places, homes) + _USERS + "exit 0",
        ]
        return (Probe("\n".join(lines), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        rows = [line.partition("=")[::2] for line in facts[self.probes()[0]].text.splitlines()]
        found = {kind for kind, _ in rows}
        homes = [value for kind, value in rows if kind == "home"]
        if not (homes or {"ours", "empty", "aside"} & found):
            return None
        have = [*(["the link"] if "ours" in found else []), *homes]
        what = few(have or [f"{self.homes}, empty" if "empty" in found else "what was there, moved aside"])
        want = "as before: what was moved aside is back" if "aside" in found else ABSENT
        disturbs = TAKES if self.users(facts) and (homes or "ours" in found) else ""
        return Change(f"venv {self.path}", what, want, (Step(self._script()),), disturbs=disturbs)

    def users(self, facts: Facts) -> tuple[str, ...]:
        """The programs that run from one of the venvs."""
        rows = (line.partition("=")[::2] for line in facts[self.probes()[0]].text.splitlines())
        return tuple(value for kind, value in rows if kind == "user")

    def _script(self) -> str:
        return "\n".join(
            [
                sh("case $(readlink -- %s || true) in %s/*) rm -f -- %s ;; esac", self.path, self.homes, self.path),
                sh("rm -f -- %s", f"{self.path}.hostwright-new"),
                f"rm -rf -- {self._pattern} {self._pattern}.wheels",
                oldest_back(self.path),
                sh("kept=%s; place=%s", originals.kept(self.path), self.path),
                'if [ -L "$kept" ] && [ ! -e "$place" ] && [ ! -L "$place" ]; then cp -aT -- "$kept" "$place"; fi',
                originals.FORGET + sh("forget %s", self.path),
                sh("for folder in %s %s; do", self.homes, PurePosixPath(self.homes).parent),
                '  if [ -d "$folder" ]; then rmdir --ignore-fail-on-non-empty -- "$folder"; fi',
                "done",
            ]
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()


def oldest_back(path: str) -> str:
    """Commands that put the oldest ``PATH.before-hostwright.*`` back to ``path`` where nothing is there now."""
    return "\n".join(
        [
            sh("old=$(ls -1dtrc -- %s.before-hostwright.* 2>/dev/null | head -n 1)", path),
            sh('if [ -n "$old" ] && [ ! -e %s ] && [ ! -L %s ]; then mv -T -- "$old" %s; fi', path, path, path),
        ]
    )
