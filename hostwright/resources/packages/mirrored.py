"""Package files from the package mirror for a change, or the reason why the mirror cannot serve the change."""

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

#: probes that ``take`` needs in addition to dpkg's database
PROBES: tuple[Probe, ...] = (OS_RELEASE, UNAME)


@dataclass(frozen=True, slots=True)
class Taken:
    """Package files from the mirror for one change: the packages to install, and their possible dependencies.

    Packages that the host has at the same version are left out. Without a mirror, ``files`` is empty.
    """

    files: tuple[MirroredDeb, ...] = ()
    #: whether the mirror provides only the dependencies, not the packages
    beside: bool = False
    lacking: str = ""  #: reason why the mirror cannot serve the change

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(file.name for file in self.files)

    @property
    def noted(self) -> str:
        """Text for the wanted state in a plan: how many packages are from the mirror; empty for none."""
        number = count(len(self.files), "package")
        how = f", with {number}" if self.beside else f", from {number}"
        return f"{how} of the mirror, without the host's{' other' if self.beside else ''} sources" if self.files else ""

    def refusal(self, what: str, have: str, want: str) -> Refusal:
        """Refusal to change ``what`` from ``have`` to ``want``, because the mirror lacks a package."""
        return Refusal(what, have, f"{want}, from the mirror", "package-mirror", self.lacking)


def take_for_others(mirror: PackageMirror | None, facts: Facts, words: Iterable[str]) -> Taken:
    """Mirrored files of the distribution packages that the packages ``words`` need.

    ``words`` (``name`` or ``name=version``) are in a repository on the host's disk. Empty if the mirror has no record
    of them.
    """
    names = tuple(word.partition("=")[0] for word in words)
    if mirror is None or not names:
        return Taken()
    distribution = distribution_of(facts)
    needed = mirror.needed_by_others(distribution, names)
    return Taken(mirror.closure(distribution, needed, _installed(facts)), beside=True)


def take(mirror: PackageMirror | None, facts: Facts, words: Iterable[str]) -> Taken:
    """Mirrored files of the packages ``words`` (``name`` or ``name=version``), to install or reinstall them."""
    chosen = tuple(words)
    if mirror is None or not chosen:
        return Taken()
    distribution = distribution_of(facts)
    if lacking := mirror.lacking(distribution, chosen):
        of_host = printable(distribution or os_release(facts).get("PRETTY_NAME", "this distribution"))
        return Taken(
            lacking=f"the mirror has no {few(list(lacking))} for {of_host}, and this host installs packages from the "
            f"mirror only: run {Command('audit')} on this host, then {Command('mirror')}"
        )
    return Taken(mirror.closure(distribution, (word.partition("=")[0] for word in chosen), _installed(facts)))


def _installed(facts: Facts) -> frozenset[tuple[str, str]]:
    return frozenset((row.base, row.version) for row in dpkg_table(facts).values() if row.present)
