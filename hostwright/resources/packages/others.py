"""Differences of a directory from the packages in it: files that people added or changed, and missing files.

Added files are left in place. Changed files are copied before dpkg deletes or replaces them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.model import Facts, Probe
from hostwright.resources import originals
from hostwright.resources.files.archives_gone import RECORDS
from hostwright.resources.files.aside import KEEP_ASIDE, kept_aside, stays
from hostwright.resources.files.paths import MOVED_ASIDE, moved_aside

INFO = "/var/lib/dpkg/info"  #: directory in which dpkg stores the list of each package's files

#: maximum size in bytes of a probe's output (a toolkit without any of its files needs 1 MB)
CAP_BYTES = 4 * 1024 * 1024
#: maximum number of bytes that a probe hashes (in 0.25 s)
LOOK_BYTES = 128 * 1024 * 1024
#: shell functions ``others TREE [LIBRARY...]``, which prints the differences of a directory from its packages, and
#: ``keep_changed TREE PACKAGE...``, which copies the changed files of these packages
_OTHERS = sh_file(__file__, "sh/others.sh", info=INFO, records=RECORDS, files=originals.FILES, look_bytes=LOOK_BYTES)


@dataclass(frozen=True, slots=True)
class PackageDirectory:
    """A directory that should contain only files of packages."""

    root: str  #: path of the directory that contains only files of packages
    libraries: tuple[str, ...] = ()  #: paths of subdirectories of ``root`` with shared objects

    @property
    def probe(self) -> Probe:
        """Probe for differences from the packages, slow and therefore shared by all states of this directory."""
        return _below(self)


@lru_cache(maxsize=16)
def _below(tree: PackageDirectory) -> Probe:
    return Probe(_OTHERS + "others " + words((tree.root, *tree.libraries)), root=True, cap_bytes=CAP_BYTES, shared=True)


@dataclass(frozen=True, slots=True)
class Others:
    """Files below a directory of packages that users or administrators added or changed."""

    tree: str
    added: tuple[str, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()  #: package and path of each file that people changed
    by_hand: bool = False  #: whether the directory contains programs but no files of packages
    waiting: bool = False  #: whether the directory is missing and an earlier directory was moved aside

    @classmethod
    def of(cls, facts: Facts, tree: PackageDirectory | None) -> Others:
        """Parse the answer of ``tree.probe`` in ``facts``; without ``tree``, the result is empty."""
        if not tree:
            return cls("")
        rows = [line.split("\t") for line in facts[tree.probe].text.splitlines()]
        added = tuple(row[1] for row in rows if row[0] == "added" and len(row) == 2)
        changed = tuple((row[1], row[2]) for row in rows if row[0] == "changed" and len(row) == 3)
        return cls(tree.root, added, changed, ["by hand"] in rows, ["back"] in rows)

    def within(self, packages: Iterable[str]) -> Others:
        """Copy with only the changed files of ``packages``."""
        names = set(packages)
        return replace(self, changed=tuple(row for row in self.changed if row[0] in names))

    @property
    def keeping(self) -> str:
        """Commands to run before dpkg: they copy the changed files, or move an installation by hand aside.

        The commands can be repeated after an interruption.
        """
        names = tuple(dict.fromkeys(package for package, _ in self.changed))
        if self.by_hand:
            by_hand = sh("if others %s | grep -x 'by hand' >/dev/null; then ", self.tree)
            return _OTHERS + by_hand + sh(MOVED_ASIDE, *[self.tree] * 4) + "; fi\n"
        if not names:
            return ""
        return KEEP_ASIDE + _OTHERS + sh("keep_changed %s ", self.tree) + words(names) + "\n"

    @property
    def kept(self) -> tuple[str, ...]:
        """Warnings that copies of the changed files are kept."""
        if self.by_hand:
            return (moved_aside("the installation by hand", self.tree),)
        return kept_aside(
            ", ".join(dict.fromkeys(name for name, _ in self.changed)), [path for _, path in self.changed]
        )

    @property
    def stays(self) -> tuple[str, ...]:
        """Warnings that the added files are left in place."""
        return stays(self.tree, self.added)
