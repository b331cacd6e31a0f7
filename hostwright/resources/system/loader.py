"""The dynamic loader's cache, and names that the system's alternatives manage."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hostwright.common.quoting import sh, words
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources import originals
from hostwright.resources.files.files import ABSENT
from hostwright.resources.packages.packages import DPKG_LOCK
from hostwright.resources.python.venv_gone import oldest_back

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
    #: the file in ``/etc/ld.so.conf.d`` that names the directories, for the sentence when another wins
    conf: str = field(metadata=NO_IDENTITY)

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
            (Step("\n".join(["/sbin/ldconfig", *self._check()]), DPKG_LOCK),),  # dpkg's triggers run it as well
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()  # whoever takes away libraries, or the file that names their directories, runs ldconfig

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
            *map(originals.keep_original, (self.link, *_settings(self.name))),
            sh("update-alternatives --install %s %s %s %s", self.link, self.name, self.target, self.priority),
            sh("update-alternatives --set %s %s", self.name, self.target),
            sh('[ "$(readlink -m -- %s)" = %s ]', self.link, self.target),
        ]
        return Change(f"alternative {self.link}", have, self.target, (Step("\n".join(script), DPKG_LOCK),))

    def removal(self) -> tuple[Resource, ...]:
        return (AlternativeGone(self.link, self.name, self.target),)


def _settings(name: str) -> tuple[str, str]:
    """Where the system keeps which choices a name has and whether one was set by hand, and which one that is."""
    return f"/var/lib/dpkg/alternatives/{name}", f"/etc/alternatives/{name}"


@dataclass(frozen=True, slots=True)
class FormerName:
    """What the link of an alternative was is kept, before packages come that take its name for themselves.

    There is nothing to do where it is no link, or leads to the right place already.
    """

    alternative: Alternative

    def probes(self) -> tuple[Probe, ...]:
        link = self.alternative.link
        due = Probe(sh("[ -L %s ] && [ ! -e %s ]", link, originals.written(link)), root=True)
        return (due, *self.alternative.probes())

    def plan(self, facts: Facts) -> Change | None:
        change = self.alternative.plan(facts)
        if change is None or not facts[self.probes()[0]].ok:
            return None
        paths = (self.alternative.link, *_settings(self.alternative.name))
        step = Step("\n".join(map(originals.keep_original, paths)))
        return Change(f"former {self.alternative.link}", change.have, "kept", (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class AlternativeGone:
    """A name of the system's alternatives without the choice ``target``.

    The name leads where it led before Hostwright's first change, if that is still a choice, else where the system
    chooses. A link of others that was no alternative, and what was moved aside, come back where nothing is now.
    """

    link: str
    name: str
    target: str

    def probes(self) -> tuple[Probe, ...]:
        kept = originals.kept(self.link)
        lines = [
            sh("update-alternatives --list %s | grep -qxF -e %s && echo registered", self.name, self.target),
            sh("if [ -e %s ] || [ -L %s ]; then exit 0; fi", self.link, self.link),
            sh("case $(readlink -- %s) in ''|%s) ;; *) echo kept ;; esac", kept, _settings(self.name)[1]),
            sh("for old in %s.before-hostwright.*; do", self.link),
            '  if [ -e "$old" ] || [ -L "$old" ]; then echo aside; break; fi',
            "done; exit 0",
        ]
        return (Probe("\n".join(lines), root=True),)

    def plan(self, facts: Facts) -> Change | None:
        found = set(facts[self.probes()[0]].text.split())
        if not found & {"registered", "kept", "aside"}:
            return None
        have = f"{self.target} is a choice" if "registered" in found else ABSENT
        step = Step("\n".join(self._script()), DPKG_LOCK)
        return Change(f"alternative {self.link}", have, f"as before, without {self.target}", (step,))

    def _script(self) -> list[str]:
        choices, chosen = map(originals.kept, _settings(self.name))
        kept = originals.kept(self.link)
        return [
            sh("choices() { update-alternatives --list %s 2>/dev/null || true; }", self.name),
            sh("if choices | grep -qxF -e %s; then", self.target),
            sh("  update-alternatives --remove %s %s", self.name, self.target),
            sh("  by=$(sed -n 1p %s 2>/dev/null || true); was=$(readlink -- %s || true)", choices, chosen),
            '  if [ "$by" = manual ] && choices | grep -qxF -e "$was"; then',
            sh('    update-alternatives --set %s "$was"', self.name),
            "  fi",
            "fi",
            # Another choice of ours, of a former stack, may have the name yet: whoever takes that puts the link back.
            "forgotten=yes",
            sh("case $(readlink -- %s || true) in ''|%s) ;;", kept, _settings(self.name)[1]),
            sh("  *) if [ -e %s ] || [ -L %s ]; then forgotten=", self.link, self.link),
            sh("  else cp -aT -- %s %s; fi ;;", kept, self.link),
            "esac",
            oldest_back(self.link),
            f'{originals.FORGET}if [ -n "$forgotten" ]; then',
            *(sh("  forget %s", path) for path in (self.link, *_settings(self.name))),
            "fi",
        ]

    def removal(self) -> tuple[Resource, ...]:
        return ()
