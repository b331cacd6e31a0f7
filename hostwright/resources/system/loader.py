"""The dynamic loader's cache, and names that the system's alternatives manage."""

from __future__ import annotations

from dataclasses import dataclass, field

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Change, Facts, Probe, RemovalState, Resource, Step
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources import originals
from hostwright.resources.files import passes
from hostwright.resources.files.aside import OLDEST_BACK
from hostwright.resources.files.paths import ABSENT, MOVED_ASIDE, moved_aside
from hostwright.resources.packages.packages import DPKG_LOCK

#: ``found PATTERN HOME``: name and path of what the loader opens for each matching name
FOUND = sh_file(__file__, "sh/loader_found.sh")


@dataclass(frozen=True, slots=True)
class LoaderCache(Resource):
    r"""The dynamic loader's cache finds each of these libraries, and finds it first, below ``home``.

    Whoever starts a program, from wherever, gets what this cache says: login shells, ssh, cron, systemd and sudo alike.
    The change runs ``ldconfig``. It fails, and says where the loader looks, if another directory is still first. On
    removal there is nothing to do: whoever takes away libraries, or the file that names them, runs ``ldconfig``.

    >>> cache = LoaderCache(("libtool.so.2",), "/opt/tool", "/etc/ld.so.conf.d/tool.conf")
    >>> print(plan_text(cache, {"ldconfig": "libtool.so.2 /usr/lib/libtool.so.2\n"}))
    ~ loader cache: libtool.so.2 /usr/lib/libtool.so.2 → below /opt/tool
    """

    libraries: tuple[str, ...]  #: names as programs ask for them (``libtool.so.2``), one at least
    home: str  #: the directory below which they lie
    #: the file in ``/etc/ld.so.conf.d`` that names the directories, for the sentence when another wins
    conf: str = field(metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(FOUND + sh("found %s %s", " ".join(self.libraries), self.home), shared=True),)

    def plan(self, facts: Facts) -> Change | None:
        lines = (line.partition(" ") for line in facts[self.probes()[0]].text.splitlines())
        paths = {name: path for name, _, path in lines}
        wrong = [name for name in self.libraries if not paths.get(name, "").startswith(f"{self.home}/")]
        if not wrong:
            return None
        return Change(
            "loader cache",
            ", ".join(f"{name} {paths.get(name, ABSENT)}" for name in wrong),
            f"below {self.home}",
            (Step("/sbin/ldconfig\n" + FOUND + self._check(), DPKG_LOCK),),  # dpkg's triggers run it as well
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()  # whoever takes away libraries, or the file that names their directories, runs ldconfig

    def _check(self) -> str:
        """What another directory puts first, ldconfig alone cannot mend: say which, and fail."""
        values = {"libraries": self.libraries, "home": self.home, "conf": self.conf}
        return sh_file(__file__, "sh/loader_check.sh", **values)


@dataclass(frozen=True, slots=True)
class Alternative(Resource):
    r"""A name that the system's alternatives manage leads to ``target``, whichever other choices are registered.

    Only where the name leads counts: a plain link to the right place is as good. What is in its place and belongs to no
    package is moved aside; a package's own file makes the change fail. When the role is removed, the choice goes, and
    the name leads where it led before.

    >>> tool = Alternative("/usr/local/tool", "tool", "/usr/local/tool-1.2", 12)
    >>> print(plan_text(tool, {"readlink -m": "/usr/local/tool-1.1\n"}))
    ~ alternative /usr/local/tool: /usr/local/tool-1.1 → /usr/local/tool-1.2
    """

    link: str  #: the path that people use
    name: str  #: what ``update-alternatives`` calls it
    target: str  #: where it leads
    priority: int  #: of the choice, for when the system chooses: the highest wins

    def probes(self) -> tuple[Probe, ...]:
        # either may be reached through a link, such as a /usr/local that lies elsewhere
        both = sh("both=$(readlink -m -- %s %s); to=${both%%%%\n*}\n", self.link, self.target)
        there = sh('[ "$to" != "${both#*\n}" ] || to=%s\n', self.target)
        seen = sh("if [ %s -ef %s ]; then to=%s; else\n", self.link, self.target, self.target)  # without a process
        ends = sh('fi\necho "$to"; [ -e %s ] || [ -L %s ]', self.link, self.link)
        return (Probe(f"{seen}{both}{there}{ends}", shared=True),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        have = answer.strip() if answer.ok else ABSENT
        if have == self.target:
            return None
        warnings = (moved_aside("what is there", self.link),) if have == self.link else ()
        have = "not a link" if have == self.link else have
        theirs = "if [ -e %s ] && [ ! -L %s ] && dpkg-query -S -- %s; then exit 1; fi\n"
        aside = sh(theirs + MOVED_ASIDE, *[self.link] * 7)
        script = [
            aside,
            *map(originals.keep_original, (self.link, *settings_of(self.name))),
            sh("update-alternatives --install %s %s %s %s", self.link, self.name, self.target, self.priority),
            sh("update-alternatives --set %s %s", self.name, self.target),
            sh('[ "$(readlink -m -- %s)" = "$(readlink -m -- %s)" ]', self.link, self.target),
        ]
        step = Step("\n".join(script), DPKG_LOCK)
        return Change(f"alternative {self.link}", have, self.target, (step,), warnings=warnings)

    def removal(self) -> tuple[Resource, ...]:
        return (AlternativeGone(self.link, self.name, self.target),)


@dataclass(frozen=True, slots=True)
class FormerName(Resource):
    r"""What lies at an alternative's path is kept, before packages come that take the name for themselves.

    It comes before the packages, ``Alternative`` after them. There is nothing to do where the path is no link, or
    leads to the right place. ``Alternative`` puts back what was kept when the role is removed.

    >>> tool = Alternative("/usr/local/tool", "tool", "/usr/local/tool-1.2", 12)
    >>> print(plan_text(FormerName(tool), {"[ -L": "", "readlink -m": "/opt/tool\n"}))
    ~ former /usr/local/tool: /opt/tool → kept
    """

    alternative: Alternative  #: the one whose path it is

    def probes(self) -> tuple[Probe, ...]:
        link = self.alternative.link
        mark = originals.written(link)
        due = Probe(sh("[ -L %s ] && [ ! -e %s ]", link, mark), root=True, part=passes.link_without(link, mark))
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


def settings_of(name: str) -> tuple[str, str]:
    """The file with a name's choices and whether one was set by hand, and the link to the current choice."""
    return f"/var/lib/dpkg/alternatives/{name}", f"/etc/alternatives/{name}"


@dataclass(frozen=True, slots=True)
class AlternativeGone(RemovalState):
    """A name of the system's alternatives does not have the choice ``target``, unless it had it before Hostwright came.

    The name leads where it led before Hostwright's first change, if that is still a choice, else where the system
    chooses. A link of others that was not an alternative, and anything moved aside, comes back if its place is free.
    """

    link: str  #: the path that users use (``/usr/bin/NAME``)
    name: str  #: of the alternative
    target: str  #: the choice that is removed: the path that it leads to

    def probes(self) -> tuple[Probe, ...]:
        return (
            Probe(
                sh_file(
                    __file__,
                    "sh/alternative_gone_probe.sh",
                    name=self.name,
                    link=self.link,
                    target=self.target,
                    kept=originals.kept(self.link),
                    chosen=settings_of(self.name)[1],
                    mark=originals.written(self.link),
                    record=f"{originals.ORIGIN}/packages",
                ),
                root=True,
            ),
        )

    def plan(self, facts: Facts) -> Change | None:
        states = set(facts[self.probes()[0]].text.split())
        if not states & {"registered", "kept", "aside"}:
            return None
        have = f"{self.target} is a choice" if "registered" in states else ABSENT
        step = Step(self._script(), DPKG_LOCK)
        return Change(f"alternative {self.link}", have, f"as before, without {self.target}", (step,))

    def _script(self) -> str:
        choices, chosen = settings_of(self.name)
        take = sh_file(
            __file__,
            "sh/alternative_gone.sh",
            name=self.name,
            link=self.link,
            target=self.target,
            choices=choices,
            chosen=chosen,
            kept_choices=originals.kept(choices),
            kept_chosen=originals.kept(chosen),
            kept_link=originals.kept(self.link),
        )
        return OLDEST_BACK + originals.FORGET + take
