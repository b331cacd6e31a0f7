"""Packages of the distribution that come from the mirror: which files a change takes, or why it cannot be made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hostwright.common.command import Command
from hostwright.common.text import count, printable
from hostwright.plan.host.hostfacts import OS_RELEASE, UNAME, os_release
from hostwright.plan.model import Facts, Probe, Refusal
from hostwright.plan.stacks.distribution import distribution_of
from hostwright.resources.files.paths import few
from hostwright.resources.packages.dpkg import dpkg_table
from hostwright.stack.store.debs import MirroredDeb, PackageMirror

#: what ``take`` reads beside dpkg's database
PROBES: tuple[Probe, ...] = (OS_RELEASE, UNAME)


@dataclass(frozen=True, slots=True)
class Taken:
    """The package files of a change: those that it names and all that they may need, of which the host has none at the
    same version. Without a mirror there are none, and apt asks the host's own sources."""

    files: tuple[MirroredDeb, ...] = ()
    beside: bool = False  #: whether they go with packages of a source of their own
    lacking: str = ""  #: why the mirror cannot serve it, as a sentence; empty where it can

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files, as changes name artifacts."""
        return tuple(file.name for file in self.files)

    @property
    def noted(self) -> str:
        """What a plan says of them, after what is wanted."""
        number = count(len(self.files), "package")
        how = f", with {number}" if self.beside else f", from {number}"
        return f"{how} of the mirror, without the host's{' other' if self.beside else ''} sources" if self.files else ""

    def refusal(self, what: str, have: str, want: str) -> Refusal:
        """What is planned in place of a change that the mirror cannot serve."""
        return Refusal(what, have, f"{want}, from the mirror", "package-mirror", self.lacking)


def take_for_others(mirror: PackageMirror | None, facts: Facts, words: Iterable[str]) -> Taken:
    """The files that packages of a repository on the host's own disk may need of the distribution; none where the
    mirror knows nothing of them."""
    names = tuple(word.partition("=")[0] for word in words)
    if mirror is None or not names:
        return Taken()
    distribution = distribution_of(facts)
    needed = mirror.needed_by_others(distribution, names)
    return Taken(mirror.closure(distribution, needed, _installed(facts)), beside=True)


def take(mirror: PackageMirror | None, facts: Facts, words: Iterable[str]) -> Taken:
    """The files for packages (``name`` or ``name=version``) that are missing or shall be unpacked again."""
    chosen = tuple(words)
    if mirror is None or not chosen:
        return Taken()
    distribution = distribution_of(facts)
    if lacking := mirror.lacking(distribution, chosen):
        of_host = printable(distribution or os_release(facts).get("PRETTY_NAME", "this distribution"))
        return Taken(
            lacking=f"packages of this host come from the mirror, and it has no {few(list(lacking))} for {of_host}: "
            f"run {Command('mirror')}, which looks at what the last {Command('audit')} saw on each host"
        )
    return Taken(mirror.closure(distribution, (word.partition("=")[0] for word in chosen), _installed(facts)))


def _installed(facts: Facts) -> frozenset[tuple[str, str]]:
    """Names and versions of what is there."""
    return frozenset((row.base, row.version) for row in dpkg_table(facts).values() if row.present)
