"""Removal of packages, with the dependencies that no other package needs.

A package is kept if it was installed before Hostwright's first change, or if a remaining package needs it. The packages
to remove are computed here from dpkg's dependencies and named in the plan; ``apt-get`` purges exactly these packages.
``apt-get autoremove`` would also remove packages that are unneeded for other reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.model import Change, Facts, Probe, RemovalState, Step
from hostwright.resources.files.aside import OLDEST_BACK
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.originals import (
    BROUGHT,
    INSTALLED,
    INSTALLED_BY_US,
    MANUAL_BEFORE,
    ORIGIN,
    PACKAGES_BEFORE,
    installed_by_us,
    packages_before,
)
from hostwright.resources.packages.dpkg import (
    ALONG,
    APT_OPTIONS,
    DPKG,
    DPKG_LOCK,
    MIRROR_TRIES,
    NO_LISTS,
    PATIENCE,
    PATIENTLY,
    Installed,
    dpkg_table,
    mend_cut_script,
    mend_script,
)
from hostwright.resources.packages.others import Others, PackageDirectory

#: probe for the dependencies, recommendations and virtual packages of each package, without versions
DEPENDS = Probe(
    "dpkg-query -W -f='${Package}\\t${Pre-Depends}, ${Depends}\\t${Recommends}\\t${Provides}\\n' |"
    " sed 's/ *([^)]*)//g'",
    cap_bytes=4 * 1024 * 1024,
)
MANUAL = Probe("apt-mark showmanual", cap_bytes=256 * 1024)
#: probe for lines ``LABEL PACKAGE`` of dependencies that apt installed for Hostwright's packages
WERE_BROUGHT = Probe(sh("cat %s", BROUGHT), root=True, cap_bytes=256 * 1024)
KERNELS = ("linux-image-", "linux-modules-")  #: prefixes of names of packages that are never removed

#: dependencies of a package: for each dependency, a tuple with the alternatives
Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Dependencies, recommendations and virtual packages of one package."""

    needs: Groups
    wants: Groups
    provides: tuple[str, ...]


def _groups(text: str) -> Groups:
    choices = (tuple(name.strip().partition(":")[0] for name in part.split("|")) for part in text.split(","))
    return tuple(filter(None, (tuple(filter(None, choice)) for choice in choices)))


@lru_cache(maxsize=16)
def parse_depends(text: str) -> Mapping[str, Row]:
    """Parse the output of the probe ``DEPENDS``: package name → row, with all architectures merged."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 4:
            name, needs, wants = fields[0], _groups(fields[1]), _groups(fields[2])
            provides = tuple(name for group in _groups(fields[3]) for name in group)
            old = rows.get(name, Row((), (), ()))
            rows[name] = Row(old.needs + needs, old.wants + wants, old.provides + provides)
    return rows


def _names(text: str) -> set[str]:
    return {name.partition(":")[0] for name in text.split()}


def _walk(roots: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    reached: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo.extend(following(name))
    return reached


class Database:
    """Installed packages of a host with their dependencies, and the packages from before Hostwright's first change."""

    def __init__(self, facts: Facts):
        self.table = dpkg_table(facts)
        self.present = {name for name, row in self.table.items() if row.present or row.broken}
        self.before = packages_before(facts)
        self._installed = installed_by_us(facts)
        self._rows = parse_depends(facts[DEPENDS].text)
        self._manual = _names(facts[MANUAL].text)
        manual_before = facts[MANUAL_BEFORE]
        self._manual_before = _names(manual_before.text) if manual_before.ok else self._manual
        self._brought = [line.split(" ") for line in facts[WERE_BROUGHT].text.splitlines()]
        self._providers: dict[str, set[str]] = {}
        for name in self.present:
            # a package with ``:`` in the name is foreign and satisfies no dependency of the host's own packages
            for provided in () if ":" in name else (name, *self._row(name).provides):
                self._providers.setdefault(provided, set()).add(name)

    def _row(self, name: str) -> Row:
        # a name without architecture is enough, because rows of all architectures are merged
        return self._rows.get(name.partition(":")[0], Row((), (), ()))

    def was_there(self, name: str) -> bool:
        """Whether the package ``name`` was installed before Hostwright's first change."""
        row = (self.before or {}).get(name)
        return row is not None and (row.present or row.broken)

    def came_by_us(self, name: str) -> bool:
        """Whether Hostwright installed the package ``name``."""
        return not self.was_there(name) and (self._installed is None or name in self._installed)

    def became_manual(self, name: str) -> bool:
        """Whether the package has been marked as manually installed since Hostwright's first change.

        ``False`` for a package that somebody else has installed since then.
        """
        known = self.was_there(name) or self.came_by_us(name)
        return known and name in self._manual and name not in self._manual_before

    def became_held(self, name: str) -> bool:
        """Whether the package has been held since Hostwright's first change; ``False`` if ``before`` is unknown."""
        old = self.before.get(name) if self.before is not None else None
        return self.before is not None and self.table[name].held and not (old is not None and old.held)

    def brought_by(self, names: set[str], label: str) -> set[str]:
        """Packages that were installed as dependencies of ``names``, or are recorded as dependencies of ``label``.

        Packages from before Hostwright's first change, manually installed packages and kernels are left out.
        """
        reached = _walk(names, lambda name: self._chosen(self._row(name).needs))
        earlier = {row[1] for row in self._brought if len(row) == 2 and row[0] == label} & self.present
        return {name for name in reached | earlier if name not in names and self._may_go(name)}

    def _may_go(self, name: str) -> bool:
        return name not in self._manual and not self.was_there(name) and not name.startswith(KERNELS)

    def needed_without(self, candidates: set[str]) -> set[str]:
        """All packages except ``candidates``, and those of ``candidates`` that the other packages need."""
        return _walk(self.present - candidates, self._needs)

    def _needs(self, name: str) -> Iterator[str]:
        old = self.was_there(name)
        yield from self._chosen(self._row(name).needs, as_before=old)
        if not old:
            yield from self._chosen(self._row(name).wants)

    def _chosen(self, groups: Groups, *, as_before: bool = False) -> Iterator[str]:
        for group in groups:
            providers = {provider for name in group for provider in self._providers.get(name, ())}
            old = {provider for provider in providers if self.was_there(provider)} if as_before else set()
            yield from old or providers


#: shell function ``take VERB PACKAGE...`` that removes or purges each given package that is installed
TAKE = ALONG + sh_file(
    __file__,
    "sh/take.sh",
    apt_options=APT_OPTIONS,
    no_lists=NO_LISTS,
    patiently=PATIENCE,
    brought=BROUGHT,
    installed=INSTALLED,
)


@dataclass(frozen=True, slots=True)
class DebsGone(RemovalState):
    """None of ``packages`` is installed, unless it was installed before Hostwright's first change or another package
    needs it.

    A dependency of a removed package is removed too, if it is new, not marked as manually installed, and not needed by
    a remaining package. Packages from before Hostwright's first change lose new holds and new manual marks.
    """

    packages: tuple[str, ...]  #: names of the packages to remove
    #: whether other people may use the packages, so that packages without a record are kept
    common: bool = False
    #: label of the packages in the record of dependencies; default: the first package's name
    label: str = ""
    #: directory for these packages only; other files in this directory are kept and named in the plan
    tree: PackageDirectory | None = None

    def probes(self) -> tuple[Probe, ...]:
        asked = (DPKG, DEPENDS, MANUAL, WERE_BROUGHT, INSTALLED_BY_US, PACKAGES_BEFORE, MANUAL_BEFORE)
        return (*asked, self.tree.probe) if self.tree else asked

    def plan(self, facts: Facts) -> Change | None:
        db = Database(facts)
        if db.before is None and self.common:
            return None
        here = [db.table[name] for name in dict.fromkeys(self.packages) if name in db.table]
        ours = {row.name for row in here if row.name in db.present and db.came_by_us(row.name)}
        label = self.label or "".join(self.packages[:1])
        brought = db.brought_by(ours, label)
        needed = db.needed_without(ours | brought)
        leftovers = {row.name for row in here if row.configuration_only and db.came_by_us(row.name)} - set(
            db.before or {}
        )
        going = [db.table[name] for name in sorted(((ours | brought) - needed) | leftovers)]
        stays = [row.name for row in here if row.name in db.present and row not in going]
        unheld = tuple(name for name in stays if db.became_held(name))
        unwanted = tuple(name for name in stays if db.became_manual(name))
        others = Others.of(facts, self.tree)
        if not going and not unheld and not unwanted:
            return _back(others.tree) if others.waiting else None
        came = tuple(f"{label} {name}" for name in sorted(brought))
        others = others.within(row.name for row in going)
        script = others.keeping + _script(db, going, came, unheld, unwanted)
        change = _change(self.packages, going, unheld, unwanted, Step(script, DPKG_LOCK, 3600, MIRROR_TRIES))
        return replace(change, warnings=(*others.kept, *(others.stays if going else ())))

    def takes(self) -> frozenset[str]:
        return frozenset(f"package {name}" for name in self.packages)

    def sparing(self, wanted: Set[str], /) -> DebsGone | None:
        rest = tuple(name for name in self.packages if f"package {name}" not in wanted)
        return replace(self, packages=rest, label=self.label or self.packages[0]) if rest else None


def _back(tree: str) -> Change:
    step = Step(OLDEST_BACK + sh("oldest_back %s", tree))
    return Change(f"directory {tree}", ABSENT, "as before: the former directory", (step,))


def _change(
    packages: tuple[str, ...], going: list[Installed], unheld: tuple[str, ...], unwanted: tuple[str, ...], step: Step
) -> Change:
    have = [f"{row.name} {row.version}" + (" (configuration)" if row.configuration_only else "") for row in going]
    have += [f"{name} held" for name in unheld] + [f"{name} manual" for name in unwanted]
    want = [ABSENT] if going else []
    want += [f"{name} not held" for name in unheld] + [f"{name} automatic" for name in unwanted]
    return Change(f"packages {' '.join(packages)}", ", ".join(have), f"as before: {', '.join(want)}", (step,))


def _script(
    db: Database, going: list[Installed], came: tuple[str, ...], unheld: tuple[str, ...], auto: tuple[str, ...]
) -> str:
    """Return the commands that purge ``going``.

    The dependencies ``came`` are recorded first: after an interrupted purge, only the record shows why they are
    installed.
    """
    had_configuration = {name for name, row in (db.before or {}).items() if row.configuration_only}
    purged = tuple(row.name for row in going if row.name not in had_configuration)
    removed = tuple(row.name for row in going if row.name in had_configuration)
    broken = any(row.broken for row in db.table.values())
    script = [(mend_script if broken else mend_cut_script)(row.name for row in going)]
    if going and came:
        script.append(sh("mkdir -p -m 700 -- %s", ORIGIN))
        script.append("printf '%s\\n' " + words(came) + sh(" >>%s", BROUGHT))
        script.append(sh("sync %s", BROUGHT))
    if unheld:
        script.append(PATIENTLY + " apt-mark unhold " + words(unheld))
    if auto:
        script.append(PATIENTLY + " apt-mark auto " + words(auto))
    if going:
        script.append(TAKE)
    if purged:
        script.append("take purge " + words(purged))
    if removed:
        script.append("take remove " + words(removed))
    return "\n".join(script)
