"""States of the dynamic loader's cache, and of names in the alternatives system."""

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

#: shell function ``found PATTERN HOME`` that prints each matching library and the file that the loader opens
FOUND = sh_file(__file__, "sh/loader_found.sh")


@dataclass(frozen=True, slots=True)
class LoaderCache(Resource):
    r"""The dynamic loader's cache resolves each of these libraries to a file below ``home``.

    All programs use the cache. The change runs ``ldconfig``, and fails if another directory still has priority. When
    the role is removed, the states that remove the libraries or ``conf`` run ``ldconfig``.

    >>> cache = LoaderCache(("libtool.so.2",), "/opt/tool", "/etc/ld.so.conf.d/tool.conf")
    >>> print(plan_text(cache, {"ldconfig": "libtool.so.2 /usr/lib/libtool.so.2\n"}))
    ~ loader cache: libtool.so.2 /usr/lib/libtool.so.2 → below /opt/tool
    """

    libraries: tuple[str, ...]  #: names under which programs load the libraries (``libtool.so.2``), at least one
    home: str  #: directory in which the loader must find the libraries
    #: file in ``/etc/ld.so.conf.d`` that names ``home``, for the error message
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
            # the step needs dpkg's lock, because dpkg's triggers run ldconfig too
            (Step("/sbin/ldconfig\n" + FOUND + self._check(), DPKG_LOCK),),
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()  # the states that remove the libraries or ``conf`` run ldconfig

    def _check(self) -> str:
        values = {"libraries": self.libraries, "home": self.home, "conf": self.conf}
        return sh_file(__file__, "sh/loader_check.sh", **values)


@dataclass(frozen=True, slots=True)
class Alternative(Resource):
    r"""A name in the alternatives system resolves to ``target``, whatever other choices are registered.

    A plain link to the target is correct too. A file at the link's path is moved aside; if a package owns it, the
    change fails. When the role is removed, the choice is removed, and the name resolves to its former target.

    >>> tool = Alternative("/usr/local/tool", "tool", "/usr/local/tool-1.2", 12)
    >>> print(plan_text(tool, {"readlink -m": "/usr/local/tool-1.1\n"}))
    ~ alternative /usr/local/tool: /usr/local/tool-1.1 → /usr/local/tool-1.2
    """

    link: str  #: path of the link that the alternative controls (``/usr/bin/NAME``)
    name: str  #: name of the alternative in ``update-alternatives``
    target: str  #: path to which the link must resolve
    priority: int  #: priority of the choice. In automatic mode, the choice with the highest priority is used.

    def probes(self) -> tuple[Probe, ...]:
        # the link and the target may be below another link, such as a linked /usr/local
        both = sh("both=$(readlink -m -- %s %s); to=${both%%%%\n*}\n", self.link, self.target)
        there = sh('[ "$to" != "${both#*\n}" ] || to=%s\n', self.target)
        # the shell's `[` starts no process, unlike readlink
        seen = sh("if [ %s -ef %s ]; then to=%s; else\n", self.link, self.target, self.target)
        ends = sh('fi\necho "$to"; [ -e %s ] || [ -L %s ]', self.link, self.link)
        return (Probe(f"{seen}{both}{there}{ends}", shared=True),)

    def plan(self, facts: Facts) -> Change | None:
        answer = facts[self.probes()[0]]
        have = answer.strip() if answer.ok else ABSENT
        if have == self.target:
            return None
        warnings = (moved_aside("the file or directory", self.link),) if have == self.link else ()
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
    r"""The file or link at an alternative's path is kept, before packages replace it.

    A role yields this state before the states of the packages, and ``Alternative`` after them. When the role is
    removed, ``Alternative`` restores the kept file or link.

    >>> tool = Alternative("/usr/local/tool", "tool", "/usr/local/tool-1.2", 12)
    >>> print(plan_text(FormerName(tool), {"[ -L": "", "readlink -m": "/opt/tool\n"}))
    ~ former /usr/local/tool: /opt/tool → kept
    """

    alternative: Alternative  #: alternative whose file or link is kept

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
    """Paths of an alternative's two files: the list of choices, and the link to the current choice."""
    return f"/var/lib/dpkg/alternatives/{name}", f"/etc/alternatives/{name}"


@dataclass(frozen=True, slots=True)
class AlternativeGone(RemovalState):
    """The choice ``target`` is removed from an alternative, unless it was registered before Hostwright's first change.

    The name then resolves to its former target or, if that choice is gone, to the automatic choice. A former link
    outside the alternatives system, and a file that was moved aside, are restored.
    """

    link: str  #: path of the link that the alternative controls (``/usr/bin/NAME``)
    name: str  #: name of the alternative in ``update-alternatives``
    target: str  #: path that is removed from the alternative's choices

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
