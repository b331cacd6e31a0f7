"""States of Debian packages: present at a version, held, or absent; and a dpkg database without interrupted work.

A plan runs one ``dpkg-query`` per host for all packages. Steps wait for apt's own lock. Roles run in parallel, so all
steps that use dpkg on a host hold Hostwright's lock ``dpkg``.
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
    """Whether ``name`` matches at least one of the shell ``patterns``."""
    return _any_of(patterns).match(name) is not None


@dataclass(frozen=True, slots=True)
class NamedLike:
    """Filter for ``dpkg_rows``: packages whose base name matches ``patterns`` and none of ``unless``.

    Only installed packages match. With ``broken``, packages that an interrupted dpkg left incomplete match too.
    """

    patterns: tuple[str, ...]
    unless: tuple[str, ...] = ()
    broken: bool = False

    def __call__(self, row: Installed) -> bool:
        here = row.present or (self.broken and row.broken)
        return here and named_like(row.base, self.patterns) and not named_like(row.base, self.unless)


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One regular expression for all shell ``patterns``, because matching each pattern with each package is slower."""
    return re.compile("|".join(map(fnmatch.translate, patterns)) or r"(?!)")


def hold_script(names: tuple[str, ...]) -> str:
    """Command that holds the packages ``names``, so that apt does not change them."""
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
    """Commands that install packages, given as ``name``, ``name=version`` or the path of a package file.

    If apt fails because of old lists, the lists are fetched and apt is run once more. If a repository cannot be
    fetched, the step prints a note, and fails only if apt cannot install the packages without that repository.

    - ``source``: path of the packages' source list. First, only apt's lists for this source are fetched.
    - ``guard``: an extended regular expression. If apt would install a package whose name matches, the step names that
    package and fails before it installs anything.
    - ``names``: names of the packages, if ``packages`` are paths.
    - ``mirrored``: package files on the host. apt then uses only these files and ``source``.
    - ``rehearse``: if set, the commands only check. With ``prepare``, they fail if apt cannot install the packages
    together with the installed packages; with ``offered``, if no source has one of the packages.
    """
    flags = "--no-install-recommends --allow-change-held-packages"
    flags += (" --allow-downgrades" if downgrade else "") + (" --reinstall" if reinstall else "")
    named = names or packages
    fits = sh_file(__file__, "sh/fits.sh", packages=named, guard=guard, installed=INSTALLED)
    if not reinstall:
        fits += note_installed(named)
    values = {"apt_options": APT_OPTIONS, "flags": flags, "source": source, "fits": fits, "unsynced": UNSYNCED}
    install = sh_file(__file__, "sh/install.sh", **values, mirrored=" ".join(map(host_path, mirrored)))
    return f"{LISTS}{ABOUT_UNSYNCED}{install}{rehearse or 'bring'} {words(packages)}"


@dataclass(frozen=True, slots=True)
class Debs(Resource):
    r"""These packages are installed, marked as manually installed and, with ``hold``, held.

    All packages that are missing or have another version are one change, since one run of apt is cheaper than many. If
    apt fails because of old lists, the lists are fetched once. Recommended packages are left out. A package without a
    given version is never upgraded. An automatically installed package is marked as manual, so that ``apt autoremove``
    keeps it.

    When the role is removed, packages that were not installed before are removed, with the dependencies that only these
    packages need. Without ``hold``, packages are kept on a host without a record of its original state, because other
    people may use them.

    >>> packages = Debs(("gcc", "make=4.3-4.1"), hold=True)
    >>> print(plan_text(packages))
    ~ packages gcc make: gcc absent, make absent → gcc, make=4.3-4.1
    >>> print(plan_text(packages, {"dpkg-query": "gcc\t10.2.1-1\tii \nmake\t4.3-4.1\thi \n"}))
    ~ packages gcc make: gcc not held → gcc held
    >>> answers = {"dpkg-query": "gcc\t10.2.1-1\tii \n", "extended_states": "gcc\n"}
    >>> print(plan_text(Debs(("gcc",)), answers))
    ~ packages gcc: gcc automatic → gcc manual
    """

    packages: tuple[str, ...]  #: packages to install, as ``name``, or as ``name=version`` for an exact version
    hold: bool = False  #: whether to hold the packages so that apt does not upgrade a package
    #: extended regular expression. The change fails if apt would install a package with a matching name.
    guard: str = ""
    #: source list of the packages, below ``/etc/apt/sources.list.d``; default: all sources of the host
    source: str = ""
    #: directory for these packages only. Other files in the directory are kept and named in the plan.
    tree: PackageDirectory | None = field(default=None, metadata=NO_IDENTITY)
    #: mirror from which the host gets the packages; default: the host's own sources
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)
    #: whether an installation never changes other packages. The change then skips apt's simulation (1 s).
    leaf: bool = field(default=False, metadata=NO_IDENTITY)
    #: whether a separate step checks first that apt can install the packages
    rehearsed: bool = field(default=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        others = (self._moves,) if self.packages and not self.leaf else ()
        asked = (DPKG, AUTOMATIC, *(PROBES if self.mirror else others))
        return (*asked, self.tree.probe) if self.tree else asked

    @property
    def _moves(self) -> Probe:
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
        wants = [*missing, *(f"{name} held" for name in unheld), *(f"{name} manual" for name in loose)]
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
        named = {word.partition("=")[0] for word in self.packages}
        rows = [line.split(" ") for line in facts[self._moves].text.splitlines()]
        rows = [row for row in rows if row[1:2] and row[1] not in named]
        moved = [f"{row[1]} {row[2]} → {row[3]}" for row in rows if row[0] == "moves" and len(row) == 4]
        removed = [row[1] for row in rows if row[0] == "removes" and len(row) == 2]
        if moved:
            yield f"apt also changes installed packages: {few(moved)}"
        if removed:
            yield f"apt would also remove {few(removed)}; in that case the change fails and installs nothing"

    def packages_for(self, _facts: Facts | None, /) -> tuple[str, ...]:
        """Packages that the mirror must have: all packages of this state, or none if ``source`` is set."""
        return () if self.source else self.packages

    def packages_from(self, list_file: str, /) -> tuple[str, ...]:
        """Packages of this state that come from the source list ``list_file``: all or none."""
        return self.packages if self.source == list_file else ()

    def from_mirror(self, mirror: PackageMirror, /) -> Debs:
        """Copy of this state that uses ``mirror``: for all packages, or for dependencies if ``source`` is set."""
        return replace(self, mirror=mirror)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        words = (word.partition("=")[::2] for word in self.packages)
        return tuple(deb_software(facts, name, version, brought=bool(self.source)) for name, version in words)

    def removal(self) -> tuple[Resource, ...]:
        names = tuple(word.partition("=")[0] for word in self.packages)
        return (DebsGone(names, common=not self.hold, tree=self.tree),)


@dataclass(frozen=True, slots=True)
class DebsAbsent(Resource):
    r"""No package whose name matches one of these patterns is installed.

    Packages of foreign architectures count too (``NAME:i386``). Packages that depend on a removed package are also
    removed, held or not, and the plan names them. If apt would remove other packages, the change fails. When the role
    is removed, packages from before the first change are reinstalled.

    >>> others = DebsAbsent(("chrony", "ntp*"), "two would set the clock", keep=("ntpdate",))
    >>> installed = "ntp\t4.2.8\tii \nntpdate\t4.2.8\tii \nour-clocks\t1.0\tii \n"
    >>> print(plan_text(others, {"dpkg-query": installed, "look purge '(": "along our-clocks\n"}))
    ~ packages chrony ntp*: ntp 4.2.8, our-clocks 1.0 → absent (two would set the clock)
      packages that depend on them are removed too: our-clocks
    """

    patterns: tuple[str, ...]  #: shell patterns that match the names of packages to remove
    because: str = field(metadata=NO_IDENTITY)  #: reason in the plan for the removal
    keep: tuple[str, ...] = ()  #: shell patterns of package names to keep although ``patterns`` matches
    #: whether to remove configuration files too, except files that other programs write
    purge: bool = True
    #: packages to install in place of the removed packages, as ``name=version``. If no source has these, nothing is
    #: removed.
    instead: tuple[str, ...] = field(default=(), metadata=NO_IDENTITY)

    def from_mirror(self, _mirror: PackageMirror, /) -> DebsAbsent:
        """Copy of this state without the check that sources have ``instead``, because the mirror has these packages."""
        return replace(self, instead=())

    def probes(self) -> tuple[Probe, ...]:
        return (DPKG, self._along)

    @property
    def _along(self) -> Probe:
        """Probe for packages that apt would remove because they depend on removed packages."""
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
        warnings = (
            [f"packages that depend on them are removed too: {', '.join(row.name for row in along)}"] if along else []
        )
        unknown = next((reason or "no reason given" for kind, _, reason in rows if kind == "unknown"), "")
        if unknown:
            warnings.append(
                f"apt cannot compute which packages depend on them ({unknown}); if the change finds the same, it fails "
                "and removes nothing"
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
    r"""Packages that were installed before the first change, and whose names match ``patterns``, are installed again.

    apt reads only the host's own sources and preferences. It installs the former version or, if no source has it, the
    version that apt prefers. Automatic marks and holds are restored. A package that no source has is named in a note,
    and does not count as a difference.

    >>> answers = {"origin/packages": "ntp\t4.2.8\thi \nntpdate\t4.2.8\tii \n", "own_apt": "back ntp 4.2.9\n"}
    >>> print(plan_text(DebsBack(("ntp*",), keep=("ntpdate",)), answers))
    ~ packages ntp*: absent → as before: ntp 4.2.9 (it was 4.2.8)
    """

    patterns: tuple[str, ...]  #: shell patterns that match the names of removed packages
    keep: tuple[str, ...] = ()  #: shell patterns of names that were kept although ``patterns`` matches

    @property
    def _found(self) -> Probe:
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
        notes = [f"former packages that no source of the host has any more: {few(lost)}"] if lost else []
        notes += [f"apt cannot reinstall the former packages: {reason}" for reason in unknown[:1]]
        return tuple(notes)


#: kind of a line in the output of ``mending`` → text in the plan for the packages of this kind
_MENDED = {
    "leave": "%s removed, because the host's roles replace it",
    "lost": "%s compared with dpkg's sums, and unpacked again if a file differs",
    "unpack": "%s unpacked again",
    "gone": "%s unpacked again or, if no repository has it, removed",
    "Inst": "%s installed",
    "Remv": "%s removed",
    "unknown": "other changes unknown: %s",
}


#: probe for the journal files that an interrupted dpkg leaves in /var/lib/dpkg/updates
JOURNAL = Probe(
    'for file in /var/lib/dpkg/updates/*; do [ ! -e "$file" ] || echo "${file##*/}"; done', root=True, shared=True
)


@dataclass(frozen=True, slots=True)
class DpkgInOrder(Resource):
    r"""dpkg is in order: no package is half-installed, half-configured, waiting for a trigger, or lacks a dependency.

    This state precedes all states of packages, since apt refuses to work while dpkg is not in order. The change unpacks
    interrupted packages again and configures the other packages. The plan names other packages that apt has to install
    or remove; the change never removes more. A fault that apt cannot correct is left to the role that installs another
    version of the package.

    Packages that a role of the host removes later (``leaving``) are removed by this change. The maintainer scripts of
    the other packages run. If such a script may restart a service that somebody's work needs (``services``), the change
    counts as disturbing.

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
    → in order (gcc compared with dpkg's sums, and unpacked again if a file differs)
    """

    #: shell patterns that match the names of packages that roles of the host remove later
    leaving: tuple[str, ...] = field(default=(), metadata=NO_IDENTITY)
    #: pairs of a service's name in maintainer scripts and a condition that holds while a restart would end work
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
            yield "removes packages that a role replaces"
        if self.users(facts):
            rows = [row.partition(" ") for row in names["restarts"]]
            packages, services = (dict.fromkeys(row[at] for row in rows) for at in (0, 2))
            yield f"runs scripts of {', '.join(packages)} that may restart {', '.join(services)}"

    def users(self, facts: Facts) -> tuple[str, ...]:
        """Running work that would end if a maintainer script restarts a service that the work needs."""
        if not self.services:
            return ()
        named = {row.partition(" ")[2] for row in self._names(facts)["restarts"]}
        users = (condition.users(facts) for word, condition in self.services if word in named)
        return tuple(dict.fromkeys(name for names in users for name in names))

    def removed(self, facts: Facts) -> frozenset[str]:
        """Packages that the change removes."""
        names = self._names(facts)
        return frozenset((*names["leave"], *names["Remv"]))

    def _names(self, facts: Facts) -> dict[str, list[str]]:
        answer = facts[self._mending]
        rows = [line.partition(" ") for line in answer.text.splitlines()] if answer.ok else []
        return {kind: [name for first, _, name in rows if first == kind] for kind in (*_MENDED, "unmet", "restarts")}

    def removal(self) -> tuple[Resource, ...]:
        return (DpkgInOrder(services=self.services),)  # apt and dpkg cannot remove packages while dpkg is interrupted
