"""The dynamic loader's cache, and names that the system's alternatives manage."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hostwright.model import Change, Facts, Probe, Step
from hostwright.quoting import sh, words
from hostwright.resources.files import ABSENT
from hostwright.resources.packages import DPKG_LOCK

#: ``found PATTERN``: name and path, links in its directory's name followed, of what the loader opens for each matching
#: name of its cache: the first entry of this architecture. Whether the file is there is the concern of who brought it.
FOUND = r"""found() { last=; /sbin/ldconfig -p | sed -n 's/^[[:space:]]*\([^ ]*\) (libc6,x86-64[^)]*) => /\1 /p' |
  grep -E "^($1) " | while read -r name path; do
    [ "$name" != "$last" ] || continue
    echo "$name $(cd -P -- "${path%/*}" && pwd || echo "${path%/*}")/${path##*/}"; last=$name
  done; }"""


@dataclass(frozen=True, slots=True)
class LoaderCache:
    """A loader cache in which each of these libraries is found, and found first, below ``home``.

    Whoever starts a program, from wherever, gets what this cache says: login shells, ssh, cron, systemd and sudo alike.
    """

    libraries: tuple[str, ...]
    home: str
    conf: str  #: the file in ``/etc/ld.so.conf.d`` that names the directories, for the sentence when another wins

    @property
    def _ask(self) -> str:
        pattern = "|".join(re.escape(name) for name in self.libraries)
        return f"{FOUND}\n" + sh("found %s", pattern)

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(self._ask),)

    def plan(self, facts: Facts) -> Change | None:
        lines = (line.partition(" ") for line in facts[self.probes()[0]].text.splitlines())
        found = {name: path for name, _, path in lines}
        wrong = [name for name in self.libraries if not found.get(name, "").startswith(f"{self.home}/")]
        if not wrong:
            return None
        return Change(
            "loader cache",
            ", ".join(f"{name} {found.get(name, ABSENT)}" for name in wrong),
            f"below {self.home}",
            (Step("\n".join(["/sbin/ldconfig", *self._check()])),),
        )

    def _check(self) -> list[str]:
        """What another directory puts first, ldconfig alone cannot mend: say which, and fail."""
        return [
            f"places=$({self._ask})",
            "bad=",
            f"for name in {words(self.libraries)}; do",
            '  path=$(echo "$places" | sed -n "s/^$name //p")',
            sh("  case $path in %s/*) continue ;; esac", self.home),
            '  echo "hostwright: the loader finds $name at ${path:-no place}"; bad=1',
            "done",
            sh(
                'if [ -n "$bad" ]; then echo "hostwright: not below" %s "as" %s "wants; either the library is not '
                'there, or one of these names another directory first:"; grep -rs . /etc/ld.so.conf.d; exit 1; fi',
                self.home,
                self.conf,
            ),
        ]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A name of the system's alternatives that leads to ``target``, whichever other choices are registered.

    Only where the name leads counts: a plain link to the right place is as good. What is in its place and belongs to no
    package is moved aside.
    """

    link: str
    name: str
    target: str
    priority: int

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh("readlink -m -- %s && { [ -e %s ] || [ -L %s ]; }", *[self.link] * 3)),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        have = answer.strip() if answer.ok else ABSENT
        if have == self.target:
            return None
        have = "not a link" if have == self.link else have
        aside = sh("if [ -e %s ] && [ ! -L %s ]; then ", self.link, self.link) + sh(
            "! dpkg-query -S -- %s || exit 1; mv -T -- %s %s.before-hostwright.$$; fi", *[self.link] * 3
        )
        script = [
            aside,
            sh("update-alternatives --install %s %s %s %s", self.link, self.name, self.target, self.priority),
            sh("update-alternatives --set %s %s", self.name, self.target),
            sh('[ "$(readlink -m -- %s)" = %s ]', self.link, self.target),
        ]
        return Change(f"alternative {self.link}", have, self.target, (Step("\n".join(script), DPKG_LOCK),))
