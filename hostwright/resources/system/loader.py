"""The dynamic loader's cache, and names that the system's alternatives manage."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources import originals
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.packages.packages import DPKG_LOCK
from hostwright.resources.system.loader_gone import AlternativeGone, settings_of

#: ``found PATTERN``: name and path of what the loader opens for each matching name
FOUND = sh_file(__file__, "sh/loader_found.sh")


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
    def _pattern(self) -> str:
        return "|".join(re.escape(name) for name in self.libraries)

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(FOUND + sh("found %s", self._pattern)),)

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
            (Step("/sbin/ldconfig\n" + FOUND + self._check(), DPKG_LOCK),),  # dpkg's triggers run it as well
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()  # whoever takes away libraries, or the file that names their directories, runs ldconfig

    def _check(self) -> str:
        """What another directory puts first, ldconfig alone cannot mend: say which, and fail."""
        values = {"libraries": self.libraries, "pattern": self._pattern, "home": self.home, "conf": self.conf}
        return sh_file(__file__, "sh/loader_check.sh", **values)


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
            *map(originals.keep_original, (self.link, *settings_of(self.name))),
            sh("update-alternatives --install %s %s %s %s", self.link, self.name, self.target, self.priority),
            sh("update-alternatives --set %s %s", self.name, self.target),
            sh('[ "$(readlink -m -- %s)" = %s ]', self.link, self.target),
        ]
        return Change(f"alternative {self.link}", have, self.target, (Step("\n".join(script), DPKG_LOCK),))

    def removal(self) -> tuple[Resource, ...]:
        return (AlternativeGone(self.link, self.name, self.target),)


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
        paths = (self.alternative.link, *settings_of(self.alternative.name))
        step = Step("\n".join(map(originals.keep_original, paths)))
        return Change(f"former {self.alternative.link}", change.have, "kept", (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()
