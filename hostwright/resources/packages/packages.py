"""Debian packages: present at a version, held, absent, and a dpkg that is in order.

``dpkg-query`` is asked once a host for all packages. apt's own lock is waited for (``DPkg::Lock::Timeout``), never
removed; steps of one host that use dpkg share the lock ``dpkg``, so that roles can run side by side.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.model import Change, Condition, Facts, Probe, Refusal, Resource, ReturnState, Step
from hostwright.plan.roles.software import Software
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.paths import ABSENT, few
from hostwright.resources.originals import (
    FILES,
    INSTALLED,
    MANUAL_BEFORE,
    ORIGIN,
    PACKAGES_BEFORE,
    note_installed,
    packages_before,
)
from hostwright.resources.packages.debs_gone import TAKE, DebsGone
from hostwright.resources.packages.dpkg import (
    ABOUT_UNSYNCED,
    ALONG,
    APT_GET,
    APT_OPTIONS,
    AUTOMATIC,
    DPKG,
    DPKG_LOCK,
    HOLD,
    LISTS,
    MIRROR_TRIES,
    PATIENTLY,
    UNSYNCED,
    Installed,
    deb_software,
    dpkg_rows,
    dpkg_table,
    is_broken,
    mend_script,
    mending,
    parse_automatic,
    parse_dpkg,
)
from hostwright.resources.packages.mirrored import PROBES, take, take_for_others
from hostwright.resources.packages.namepass import none_like
from hostwright.resources.packages.others import Others, PackageDirectory
from hostwright.stack.stack import Artifact
from hostwright.stack.store.debs import PackageMirror
from hostwright.stack.store.hostcache import host_path

__all__ = [
    "APT_GET", "DPKG", "DPKG_LOCK", "JOURNAL", "MIRROR_TRIES", "PATIENTLY", "Debs", "DebsAbsent", "DpkgInOrder",
    "Installed", "NamedLike", "dpkg_rows", "dpkg_table", "hold_script", "install_script", "is_broken", "named_like",
    "parse_dpkg",
]  # fmt: skip


def named_like(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name matches one of these shell patterns."""
    return _any_of(patterns).match(name) is not None


@dataclass(frozen=True, slots=True)
class NamedLike:
    """For ``dpkg_rows``: packages that are present (or ``broken``), and whose name without an architecture matches one
    of these shell patterns and none of ``unless``."""

    patterns: tuple[str, ...]
    unless: tuple[str, ...] = ()
    broken: bool = False

    def __call__(self, row: Installed) -> bool:
        here = row.present or (self.broken and row.broken)
        return here and named_like(row.base, self.patterns) and not named_like(row.base, self.unless)


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all patterns: a host has hundreds of packages, and a driver three dozen names."""
    return re.compile("|".join(map(fnmatch.translate, patterns)) or r"(?!)")


def hold_script(names: tuple[str, ...]) -> str:
    """The command that keeps apt from ever moving these packages."""
    return HOLD + words(names)


def install_script(
    packages: tuple[str, ...],
    *,
    downgrade: bool = False,
    reinstall: bool = False,
    guard: str = "",
    source: str = "",
    names: tuple[str, ...] = (),
    mirrored: tuple[Artifact, ...] = (),
    rehearse: str = "",
) -> str:
    """Commands that install ``name`` or ``name=version`` words, or package files by their paths.

    Lists that are stale are fetched once and tried again. A repository that cannot be fetched fails the step only
    where apt knows no way to install these without it; else it is noted.
    ``source`` is the source list that should know the packages: its lists are fetched first and alone.
    ``guard`` is an extended regular expression: when apt's own simulation names a package that matches, nothing is
    installed and the step fails with the names.
    ``names`` are the packages' names, where ``packages`` are paths.
    ``mirrored`` are package files on the host: apt installs from these and ``source`` alone, and no other source of the
    host is asked.
    ``rehearse``: they change no package. ``prepare`` fails where apt cannot install them beside what is installed,
    ``offered`` where no source has one of them.
    """
    flags = "--no-install-recommends --allow-change-held-packages"
    flags += (" --allow-downgrades" if downgrade else "") + (" --reinstall" if reinstall else "")
    values = {"apt_options": APT_OPTIONS, "flags": flags, "guard": guard, "source": source, "installed": INSTALLED}
    values |= {"mirrored": " ".join(map(host_path, mirrored)), "unsynced": UNSYNCED}
    lines = [
        LISTS + ABOUT_UNSYNCED + sh_file(__file__, "sh/install.sh", **values),
        f"{rehearse or 'prepare'} {words(packages)}",
    ]
    if rehearse:
        return "\n".join(lines)
    if not reinstall:
        lines.append(note_installed(names or packages))
    return "\n".join([*lines, "bring " + words(packages)])


@dataclass(frozen=True, slots=True)
class Debs(Resource):
    r"""These packages are installed and wanted for themselves, and held where ``hold`` says so.

    All that are missing, or there at another version, are one change, since one run of apt is cheaper than many.
    Recommended packages are left out, and stale lists are fetched once. Nothing is upgraded where no version is given.
    One that came for another's sake is marked as manually installed: else it would go with that (``apt autoremove``).
    When the role is removed, the packages go that were not there before, with what only they brought; what others
    need stays. Without ``hold`` they count as tools that others may use too: on a host of which nobody wrote down what
    it had before, they stay.

    >>> packages = Debs(("gcc", "make=4.3-4.1"), hold=True)
    >>> print(plan_text(packages))
    ~ packages gcc make: gcc absent, make absent → gcc, make=4.3-4.1
    >>> print(plan_text(packages, {"dpkg-query": "gcc\t10.2.1-1\tii \nmake\t4.3-4.1\thi \n"}))
    ~ packages gcc make: gcc not held → gcc held
    >>> answers = {"dpkg-query": "gcc\t10.2.1-1\tii \n", "extended_states": "gcc\n"}
    >>> print(plan_text(Debs(("gcc",)), answers))
    ~ packages gcc: gcc automatic → gcc wanted for itself
    """

    packages: tuple[str, ...]  #: each ``name``, or ``name=version`` for exactly that version
    hold: bool = False  #: whether apt is kept from ever moving them
    #: an extended regular expression: where apt would also install a package whose name matches, the change fails
    #: before anything is installed
    guard: str = ""
    #: the source list that carries them: its lists are fetched first, and alone
    source: str = ""
    #: the directory of these packages alone: what people have there is named before packages go, and kept
    tree: PackageDirectory | None = field(default=None, metadata=NO_IDENTITY)
    #: the packages of the mirror, where they come from there; ``None``: from the sources of the host
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)
    #: whether no installed package changes with them: then apt is not asked, which takes a second of a host's time in
    #: every plan until they are there
    leaf: bool = field(default=False, metadata=NO_IDENTITY)
    #: whether a step before that of the change fails where apt cannot install them
    rehearsed: bool = field(default=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        others = (self._moves,) if self.packages and not self.leaf else ()
        asked = (DPKG, AUTOMATIC, *(PROBES if self.mirror else others))
        return (*asked, self.tree.probe) if self.tree else asked

    @property
    def _moves(self) -> Probe:
        """What else apt changes."""
        return Probe(sh_file(__file__, "sh/moves.sh", words=" ".join(self.packages), source=self.source), shared=True)

    def plan(self, facts: Facts) -> Change | Refusal | None:
        table = dpkg_table(facts)
        missing: list[str] = []
        unheld: list[str] = []
        have: list[str] = []
        for word in self.packages:
            name, _, version = word.partition("=")
            row = table.get(name)
            if row is None or not row.present or (version and row.version != version):
                missing.append(word)
                have.append(f"{name} {row.version if row and row.present else ABSENT}")
            elif self.hold and not row.held:
                unheld.append(name)
                have.append(f"{name} not held")
        names = tuple(word.partition("=")[0] for word in self.packages)
        automatic = facts.table(AUTOMATIC, parse_automatic)
        loose = tuple(name for name in names if name in automatic and (row := table.get(name)) and row.present)
        have += [f"{name} automatic" for name in loose]
        if not have:
            return None
        what = f"packages {' '.join(names)}"
        wants = [*missing, *(f"{name} held" for name in unheld), *(f"{name} wanted for itself" for name in loose)]
        want = ", ".join(wants)
        taken = (take_for_others if self.source else take)(self.mirror, facts, missing)
        if taken.lacking:
            return taken.refusal(what, ", ".join(have), want)
        others = Others.of(facts, self.tree).within(word.partition("=")[0] for word in missing)
        script = [others.keeping] if others.keeping else []
        install = partial(
            install_script, tuple(missing), downgrade=True, guard=self.guard, source=self.source, mirrored=taken.files
        )
        rehearsal = (install(rehearse="prepare"),) if missing and self.rehearsed else ()
        if missing:
            script.append(install())
        if loose:
            script += [note_installed(loose), f"{PATIENTLY} apt-mark manual {words(loose)}"]
        if self.hold and (missing or unheld):
            script.append(hold_script(names))
        steps = (Step(one, DPKG_LOCK, timeout_s=3600, tries=MIRROR_TRIES) for one in (*rehearsal, "\n".join(script)))
        have_all, want = ", ".join(have), want + taken.noted
        warnings = (*others.kept, *(self._moved(facts) if self._moves in facts else ()))
        return Change(what, have_all, want, tuple(steps), artifacts=taken.names, warnings=warnings)

    def _moved(self, facts: Facts) -> Iterator[str]:
        """What the plan says of other packages."""
        named = {word.partition("=")[0] for word in self.packages}
        rows = [line.split(" ") for line in facts[self._moves].text.splitlines()]
        rows = [row for row in rows if row[1:2] and row[1] not in named]
        moved = [f"{row[1]} {row[2]} → {row[3]}" for row in rows if row[0] == "moves" and len(row) == 4]
        removed = [row[1] for row in rows if row[0] == "removes" and len(row) == 2]
        if moved:
            yield f"apt changes installed packages that they need: {few(moved)}"
        if removed:
            yield f"apt would remove {few(removed)} for them, and then nothing is installed"

    def packages_for(self, _facts: Facts | None, /) -> tuple[str, ...]:
        """All of them; none where a source of their own carries them."""
        return () if self.source else self.packages

    def packages_from(self, list_file: str, /) -> tuple[str, ...]:
        """All of them, if that source carries them."""
        return self.packages if self.source == list_file else ()

    def from_mirror(self, mirror: PackageMirror, /) -> Debs:
        """Taken from the mirror; where a source of their own carries them, what they need of the distribution."""
        return replace(self, mirror=mirror)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        words = (word.partition("=")[::2] for word in self.packages)
        return tuple(deb_software(facts, name, version, brought=bool(self.source)) for name, version in words)

    def removal(self) -> tuple[Resource, ...]:
        names = tuple(word.partition("=")[0] for word in self.packages)
        return (DebsGone(names, common=not self.hold, tree=self.tree),)


@dataclass(frozen=True, slots=True)
class DebsAbsent(Resource):
    r"""No package is installed whose name matches one of these patterns.

    Those of other architectures go as well (``NAME:i386``). What depends on such a package goes with it, held or not,
    and the plan names it; the change fails where more would go by then. Those that were there before the first change
    come back when the role is removed.

    >>> others = DebsAbsent(("chrony", "ntp*"), "two would set the clock", keep=("ntpdate",))
    >>> installed = "ntp\t4.2.8\tii \nntpdate\t4.2.8\tii \nour-clocks\t1.0\tii \n"
    >>> print(plan_text(others, {"dpkg-query": installed, "look purge '(": "along our-clocks\n"}))
    ~ packages chrony ntp*: ntp 4.2.8, our-clocks 1.0 → absent (two would set the clock)
      what depends on them goes with them: our-clocks
    """

    patterns: tuple[str, ...]  #: shell patterns of names
    because: str = field(metadata=NO_IDENTITY)  #: why they must go, for the plan
    keep: tuple[str, ...] = ()  #: shell patterns of names that stay although they match
    purge: bool = True  #: ``False`` leaves their configuration files, for one that owns a file which others write in
    #: ``name=version`` of those that replace them: nothing is removed where no source has one of these
    instead: tuple[str, ...] = field(default=(), metadata=NO_IDENTITY)

    def from_mirror(self, _mirror: PackageMirror, /) -> DebsAbsent:
        """The mirror has those that replace them."""
        return replace(self, instead=())

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, self._along)

    @property
    def _along(self) -> Probe:
        """What apt removes beside them."""
        kept = f"(?!{_any_of(self.keep).pattern})" if self.keep else ""
        matching = f"{kept}(?:{_any_of(self.patterns).pattern})"
        asked = sh("look %s %s %s %s", self._verb, matching, " ".join(self.patterns), " ".join(self.keep))
        return Probe(ALONG + asked, root=True, part=none_like(self.patterns, self._matches), shared=True)

    def _matches(self, name: str) -> bool:
        return named_like(name, self.patterns) and not named_like(name, self.keep)

    @property
    def _verb(self) -> str:
        return "purge" if self.purge else "remove"

    def plan(self, facts: Facts) -> Change | None:
        unwanted = dpkg_rows(facts, NamedLike(self.patterns, self.keep, broken=True))
        if not unwanted:
            return None
        table = dpkg_table(facts)
        rows = [line.partition(" ") for line in facts[self._along].text.splitlines()]
        along = tuple(row for kind, _, name in rows if kind == "along" and (row := table.get(name)))
        warnings = [f"what depends on them goes with them: {', '.join(row.name for row in along)}"] if along else []
        unknown = next((reason or "no reason given" for kind, _, reason in rows if kind == "unknown"), "")
        if unknown:
            warnings.append(
                f"apt cannot say yet what goes with them ({unknown}): unless it can then, nothing is removed"
            )
        have = [f"{row.name} {row.version}" for row in (*unwanted, *along)]
        first = (install_script(self.instead, rehearse="offered"),) if self.instead else ()
        script = TAKE + sh("take %s ", self._verb) + words(tuple(row.name for row in (*unwanted, *along)))
        return Change(
            f"packages {' '.join(self.patterns)}",
            ", ".join(have),
            f"{ABSENT} ({self.because})",
            tuple(Step(one, lock=DPKG_LOCK, timeout_s=1800, tries=MIRROR_TRIES) for one in (*first, script)),
            warnings=tuple(warnings),
        )

    def removal(self) -> tuple[Resource, ...]:
        return (DebsBack(self.patterns, self.keep),)


_OWN_APT = sh_file(__file__, "sh/own_apt.sh", files=FILES)


@dataclass(frozen=True, slots=True)
class DebsBack(ReturnState):
    r"""Packages with such names that were on the host before the first change are there again.

    They come from the host's own sources, as if our sources and preferences were gone already: at the version of that
    time, or else at the one that apt would choose. Marks and holds are as before. Those that no source has any more
    are named, and the host counts as it should be without them.

    >>> answers = {"origin/packages": "ntp\t4.2.8\thi \nntpdate\t4.2.8\tii \n", "own_apt": "back ntp 4.2.9\n"}
    >>> print(plan_text(DebsBack(("ntp*",), keep=("ntpdate",)), answers))
    ~ packages ntp*: absent → as before: ntp 4.2.9 (it was 4.2.8)
    """

    patterns: tuple[str, ...]  #: shell patterns of names
    keep: tuple[str, ...] = ()  #: shell patterns of names that were not taken away although they match

    @property
    def _found(self) -> Probe:
        """The packages that apt would install, or why it cannot."""
        values = {"patterns": " ".join(self.patterns), "keep": " ".join(self.keep), "before": f"{ORIGIN}/packages"}
        return Probe(_OWN_APT + sh_file(__file__, "sh/back.sh", **values) + "back", root=True, cap_bytes=256 * 1024)

    def probes(self) -> tuple[Probe, ...]:
        return (PACKAGES_BEFORE, MANUAL_BEFORE, self._found)

    def _rows(self, facts: Facts, kind: str) -> list[list[str]]:
        return [row.split(" ") for row in facts[self._found].text.splitlines() if row.startswith(f"{kind} ")]

    def plan(self, facts: Facts) -> Change | None:
        before = packages_before(facts) or {}
        rows = [(row[1], row[2]) for row in self._rows(facts, "back") if len(row) == 3 and row[1] in before]
        if not rows:
            return None
        manual = facts[MANUAL_BEFORE].text.split()
        auto = tuple(name for name, _ in rows if name not in manual)
        held = tuple(name for name, _ in rows if before[name].held)
        packages = tuple(f"{name}={version}" for name, version in rows)
        script = [_OWN_APT + "own_apt", install_script(packages, downgrade=True)]
        if auto:
            script.append(f"{PATIENTLY} apt-mark auto {words(auto)}")
        if held:
            script.append(hold_script(held))
        now = (
            f"{name} {version}" + (f" (it was {old})" if (old := before[name].version) != version else "")
            for name, version in rows
        )
        return Change(
            f"packages {' '.join(self.patterns)}",
            ABSENT,
            f"as before: {', '.join(now)}",
            (Step("\n".join(script), DPKG_LOCK, timeout_s=3600, tries=MIRROR_TRIES),),
        )

    def notes(self, facts: Facts) -> tuple[str, ...]:
        lost = [" ".join(row[1:]) for row in self._rows(facts, "lost")]
        unknown = [" ".join(row[1:]) for row in self._rows(facts, "unknown")]
        notes = [f"not there as before, since no source of the host has it any more: {few(lost)}"] if lost else []
        notes += [f"apt cannot install again what was there before: {reason}" for reason in unknown[:1]]
        return tuple(notes)


#: what the plan says of each kind of line of ``mending``
_MENDED = {
    "leave": "%s removed, as the host's roles replace it",
    "lost": "%s compared with dpkg's sums, and unpacked again where a file differs",
    "unpack": "%s unpacked again",
    "gone": "%s unpacked again or, if no repository has it, removed",
    "Inst": "%s installed",
    "Remv": "%s removed",
    "unknown": "apt cannot say what else: %s",
}


#: what a dpkg that was cut left to be taken over: files in /var/lib/dpkg/updates
JOURNAL = Probe(
    'for file in /var/lib/dpkg/updates/*; do [ ! -e "$file" ] || echo "${file##*/}"; done', root=True, shared=True
)


@dataclass(frozen=True, slots=True)
class DpkgInOrder(Resource):
    r"""dpkg is in order: nothing is half-installed, half-configured, waiting for a trigger, or lacks what it needs.

    It comes before all states of packages, since apt refuses to work on such a host. The change unpacks again what was
    cut off and configures the rest. The plan names what else that takes, by apt's own simulation: packages that are
    missing (never those that are merely recommended), and what is removed. More than that is never removed. What apt
    cannot correct is left to the role that installs another version of one of these. Of what a role takes away nothing
    has to be configured or completed first: on such a host all packages of its kind go here. Scripts of packages run
    that a role does not want: where one may restart a service that holds somebody's work (``services``), the change
    disturbs that work.

    >>> print(plan_text(DpkgInOrder(), {"dpkg-query": "gcc-10\t10.2.1-1\tiU \n"}))
    ~ dpkg: interrupted (gcc-10) → in order
    >>> steps = "gone tool-2\nInst libtool3\nRemv oldtool\n"
    >>> print(plan_text(DpkgInOrder(), {"--print-uris": steps, "dpkg-query": "tool-2\t2.1-6\tiHR\n"}))
    ~ dpkg: interrupted (tool-2)
    → in order (tool-2 unpacked again or, if no repository has it, removed; libtool3 installed; oldtool removed)
    >>> print(plan_text(DpkgInOrder(), {"--print-uris": "unmet tool (Depends: libtool3)\nInst libtool3\n"}))
    ~ dpkg: unmet dependencies (tool (Depends: libtool3)) → in order (libtool3 installed)
    >>> print(plan_text(DpkgInOrder(), {"--print-uris": "lost gcc\n"}))
    ~ dpkg: not written to the disk when the host stopped (gcc)
    → in order (gcc compared with dpkg's sums, and unpacked again where a file differs)
    """

    #: shell patterns of the packages that roles of the host take away
    leaving: tuple[str, ...] = field(default=(), metadata=NO_IDENTITY)
    #: services whose restart ends somebody's work: the word with which scripts name each, and whose work it is
    services: tuple[tuple[str, Condition], ...] = field(default=(), metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        of_services = [probe for _, condition in self.services for probe in condition.probes()]
        return tuple(dict.fromkeys((DPKG, JOURNAL, self._mending, *of_services)))

    @property
    def _mending(self) -> Probe:
        return mending(self.leaving, tuple(word for word, _ in self.services))

    def plan(self, facts: Facts) -> Change | None:
        broken = [row.name for row in dpkg_rows(facts, is_broken)]
        journal = facts[JOURNAL].strip()
        names = self._names(facts)
        have = [f"interrupted ({', '.join(broken) or 'unfinished journal'})"] if broken or journal else []
        unmet = [row for row in names["unmet"] if row.partition(" ")[0] not in broken]
        have += [f"unmet dependencies ({', '.join(unmet)})"] if unmet else []
        have += [f"not written to the disk when the host stopped ({few(names['lost'])})"] if names["lost"] else []
        if not have:
            return None
        effects = [text % ", ".join(names[kind]) for kind, text in _MENDED.items() if names[kind]]
        effects += [
            f"scripts of {package} may restart {', '.join(service for _, service in rows)}"
            for package, rows in groupby(map(str.split, names["restarts"]), itemgetter(0))
        ]
        script = mend_script((*names["gone"], *names["Remv"]), names["leave"], self.leaving)
        return Change(
            "dpkg",
            "; ".join(have),
            "in order" + (f" ({'; '.join(effects)})" if effects else ""),
            (Step(script, DPKG_LOCK, tries=MIRROR_TRIES),),
            disturbs="; ".join(self._disturbs(names, facts)),
        )

    def _disturbs(self, names: dict[str, list[str]], facts: Facts) -> Iterator[str]:
        if names["leave"]:
            yield "removes packages that a role takes away"
        if self.users(facts):
            rows = [row.partition(" ") for row in names["restarts"]]
            packages, services = (dict.fromkeys(row[at] for row in rows) for at in (0, 2))
            yield f"runs scripts of {', '.join(packages)} that may restart {', '.join(services)}"

    def users(self, facts: Facts) -> tuple[str, ...]:
        """The work that a restart by a waiting package's script ends."""
        if not self.services:
            return ()
        named = {row.partition(" ")[2] for row in self._names(facts)["restarts"]}
        users = (condition.users(facts) for word, condition in self.services if word in named)
        return tuple(dict.fromkeys(name for names in users for name in names))

    def removed(self, facts: Facts) -> frozenset[str]:
        """The packages that the change removes."""
        names = self._names(facts)
        return frozenset((*names["leave"], *names["Remv"]))

    def _names(self, facts: Facts) -> dict[str, list[str]]:
        """What mending would do, by kind of line."""
        answer = facts[self._mending]
        rows = [line.partition(" ") for line in answer.text.splitlines()] if answer.ok else []
        return {kind: [name for first, _, name in rows if first == kind] for kind in (*_MENDED, "unmet", "restarts")}

    def removal(self) -> tuple[Resource, ...]:
        return (DpkgInOrder(services=self.services),)  # nothing can be taken away from one that is not in order
