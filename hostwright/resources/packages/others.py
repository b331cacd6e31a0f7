"""What lies in a directory of packages: files that people added, which stay, packaged ones that they changed, which are
kept before dpkg deletes or replaces them, and packaged ones that are gone.
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

INFO = "/var/lib/dpkg/info"  #: what each package has unpacked

#: room for the names of all files of a toolkit, when all are gone (about 8,000 of 120 bytes)
CAP_BYTES = 4 * 1024 * 1024
#: what is read at most of files that came later than their package but have old times: a quarter of a second
LOOK_BYTES = 128 * 1024 * 1024
#: ``keep_changed TREE PACKAGE...`` and ``others TREE [LIBRARY...]``
_OTHERS = sh_file(__file__, "sh/others.sh", info=INFO, records=RECORDS, files=originals.FILES, look_bytes=LOOK_BYTES)


@dataclass(frozen=True, slots=True)
class PackageDirectory:
    """A directory in which nothing but packages should put files."""

    root: str  #: its path
    libraries: tuple[str, ...] = ()  #: directories of shared objects in it

    @property
    def probe(self) -> Probe:
        """The one question for all states of this directory: dpkg's lists are long, and read once."""
        return _below(self)


@lru_cache(maxsize=16)
def _below(tree: PackageDirectory) -> Probe:
    return Probe(_OTHERS + "others " + words((tree.root, *tree.libraries)), root=True, cap_bytes=CAP_BYTES, shared=True)


@dataclass(frozen=True, slots=True)
class Others:
    """What people have below a directory of packages."""

    tree: str
    added: tuple[str, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()  #: package and path
    by_hand: bool = False  #: programs are there, and nothing is a package's
    waiting: bool = False  #: what somebody had there was moved aside, and its place is free again

    @classmethod
    def of(cls, facts: Facts, tree: PackageDirectory | None) -> Others:
        """From the answer to the directory's probe; nothing where there is no directory."""
        if not tree:
            return cls("")
        rows = [line.split("\t") for line in facts[tree.probe].text.splitlines()]
        added = tuple(row[1] for row in rows if row[0] == "added" and len(row) == 2)
        changed = tuple((row[1], row[2]) for row in rows if row[0] == "changed" and len(row) == 3)
        return cls(tree.root, added, changed, ["by hand"] in rows, ["back"] in rows)

    def within(self, packages: Iterable[str]) -> Others:
        """The same, of the changed files those of these packages."""
        names = set(packages)
        return replace(self, changed=tuple(row for row in self.changed if row[0] in names))

    @property
    def keeping(self) -> str:
        """Commands that keep the changed files, or all that somebody put there by hand, to run before these go.

        A step may be cut and repeated: what dpkg has unpacked by then is not somebody's.
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
        """The sentence for a plan in which these go."""
        if self.by_hand:
            return (moved_aside("what somebody installed there by hand", self.tree),)
        return kept_aside(
            ", ".join(dict.fromkeys(name for name, _ in self.changed)), [path for _, path in self.changed]
        )

    @property
    def stays(self) -> tuple[str, ...]:
        """The sentence for a plan in which the packages go."""
        return stays(self.tree, self.added)
