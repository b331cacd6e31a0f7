"""Finds the distribution packages for a stack's hosts, with dependencies, and pins them in the stack's lock file.

It contacts no host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hostwright.common.command import Command
from hostwright.common.errors import ArtifactError, InputError, Mistakes
from hostwright.common.text import printable
from hostwright.inventory import Host, fold
from hostwright.plan.host.hostfacts import OS_RELEASE, UNAME
from hostwright.plan.model import Answer, Facts
from hostwright.plan.stacks.distribution import (
    archive_components,
    codename_of,
    distribution_of,
    local_repositories,
    packages_of,
)
from hostwright.stack.stack import Artifact, Stack
from hostwright.stack.store.aptarchive import resolve
from hostwright.stack.store.aptroot import ARCHITECTURE, CODENAMES, AptArchive, Distribution
from hostwright.stack.store.debs import (
    LockedPackages,
    MirroredDeb,
    PackageMirror,
    packages_lock,
    parse_locked,
    read_locked,
    write_locked,
)
from hostwright.stack.store.sources import EXPORT, FileSource

if TYPE_CHECKING:
    from hostwright.plan.targets import Roster

#: function that returns a host's last known facts by name, or ``None`` without facts
Seen = Callable[[str], Facts | None]
EXAMPLE = "debian-12:6.1.0-28-amd64"
_HEADERS = "linux-headers-"


@dataclass(frozen=True, slots=True)
class PackageSearch:
    """Settings of a search for packages.

    ``systems`` are facts of imaginary hosts that replace the facts of the real hosts. With ``renew``, current versions
    replace pinned versions.
    """

    systems: tuple[Facts, ...] = ()
    renew: bool = False
    archive: AptArchive = field(default_factory=AptArchive)


@dataclass(frozen=True, slots=True)
class HostsWant:
    """Hosts that need the same packages.

    ``disks`` are package files with repositories that are unpacked on the hosts. ``components`` are the archive
    components that contain the packages.
    """

    disks: tuple[Artifact, ...] = ()
    components: tuple[str, ...] = ()
    hosts: list[str] = field(default_factory=list)


#: hosts that need a set of packages, by distribution and set of packages
Wanted = Mapping[Distribution, Mapping[tuple[str, ...], HostsWant]]


@dataclass(frozen=True, slots=True)
class FoundPackages:
    """The package files that hosts need, the names of newly pinned files, and the errors for unavailable packages."""

    files: tuple[MirroredDeb, ...] = ()
    pinned: frozenset[str] = frozenset()
    lacking: tuple[str, ...] = ()


def system(text: str) -> Facts:
    """Return the facts of an imaginary host with the distribution and the optional kernel in ``text``.

    Raises ``InputError`` unless the text has the form of ``EXAMPLE``.
    """
    name, _, kernel = text.partition(":")
    identity, _, version = name.partition("-")
    if name not in CODENAMES or not all(part.isascii() and (part.isalnum() or part in ".+-_") for part in kernel):
        known = ", ".join(CODENAMES)
        raise InputError(
            f"found {printable(text)!r}, expected a distribution and its running kernel (`uname -r`), such as "
            f"{EXAMPLE}; known distributions: {known}",
            "--systems",
        )
    release = f"ID={identity}\nVERSION_ID={version}\nVERSION_CODENAME={CODENAMES[name]}\n"
    kernels = {UNAME: Answer(0, f"{kernel} x86_64\n")} if kernel else {}
    return Facts({OS_RELEASE: Answer(0, release), **kernels})


def find_packages(
    roster: Roster, stack: Stack, wanted: Wanted, search: PackageSearch, source: FileSource | None
) -> FoundPackages:
    """Return the package files for the packages ``wanted``. Call this after fetching the stack's own files.

    Packages that the lock file lacks are searched in the distribution's archive and added to the lock file. If
    ``source`` is an export, its lock file replaces the archive. Raises ``ArtifactError`` if the search fails.
    """
    if not wanted:
        return FoundPackages()
    lock = packages_lock(roster.store, stack.name)
    before = read_locked(lock)
    now = dict(before)
    brought = source.packages(lock.name) if source else None
    for distribution, sets in wanted.items():
        have = before.get(str(distribution), LockedPackages())
        if not search.renew and not have.lacking(word for words in sets for word in words):
            continue
        if brought is not None:
            now.update(parse_locked(brought.read_text("utf-8"), brought) if brought.is_file() else {})
            continue
        folder = roster.store.root / "apt" / str(distribution)
        known = LockedPackages() if search.renew else have
        disks = [
            roster.store.locate(each) for each in dict.fromkeys(one for want in sets.values() for one in want.disks)
        ]
        read = tuple(dict.fromkeys(name for want in sets.values() for name in want.components))
        archive = replace(search.archive, components=read)
        found = resolve(distribution, (*known.wanted, *sets), archive, folder, known, repositories=disks)
        now[str(distribution)] = replace(found, wanted=tuple(dict.fromkeys(found.wanted)))
    if now != before:
        write_locked(lock, now)
    mirror = PackageMirror(now)
    of_hosts = _found(mirror, wanted, EXPORT if brought is not None else "")
    return replace(of_hosts, pinned=_names(mirror) - _names(PackageMirror(before)))


def _names(mirror: PackageMirror) -> frozenset[str]:
    return frozenset(deb.name for deb in mirror.files)


def wanted_packages(
    roster: Roster, stack: Stack, hosts: Iterable[Host], seen: Seen, systems: Sequence[Facts]
) -> Wanted:
    """Return the distribution packages that ``hosts`` need for ``stack`` and get from the mirror.

    ``seen`` returns a host's stored facts. Raises ``ArtifactError`` for a host without facts, and ``InputErrors`` with
    all errors in the hosts' variables.
    """
    wanted: dict[Distribution, dict[tuple[str, ...], HostsWant]] = {}
    unknown: list[str] = []
    mistakes = Mistakes()
    for host in hosts:
        with mistakes:
            target = roster.target(host, check=False)
            if target.packages is None:
                continue
            roles = roster.with_stack(target, stack).desired.roles
            states = [state for role in roles for state in role.resources]
            disks, others = local_repositories(states)
            components = archive_components(states)
            for facts in systems or (seen(host.name),):
                distribution = _distribution(facts)
                if distribution is None:
                    unknown.append(host.name)
                    continue
                words = tuple(dict.fromkeys((*packages_of(states, facts), *others)))
                wanted.setdefault(distribution, {}).setdefault(words, HostsWant(disks, components)).hosts.append(
                    host.name
                )
    mistakes.refuse()
    if unknown:
        names = fold(unknown)
        raise ArtifactError(
            f"{names}: packages come from the mirror, but no audit has recorded a distribution for {ARCHITECTURE} on "
            f"these hosts. Run {Command('audit', hosts=names)} (which needs only a connection to them), or pass the "
            f"distribution and kernel of all hosts (`mirror --systems {EXAMPLE}`)"
        )
    return wanted


def _distribution(facts: Facts | None) -> Distribution | None:
    name = distribution_of(facts) if facts is not None else ""
    if facts is None or not name:
        return None
    identity, _, version = name.partition("-")
    codename = codename_of(facts) or CODENAMES.get(name, "")
    return Distribution(identity, version, codename) if codename else None


def _found(mirror: PackageMirror, wanted: Wanted, cure: str) -> FoundPackages:
    files: dict[str, MirroredDeb] = {}
    lacking: dict[tuple[Distribution, str], list[str]] = {}
    for distribution, sets in wanted.items():
        for words, want in sets.items():
            files.update((deb.name, deb) for deb in mirror.files_for(str(distribution), words))
            for word in mirror.lacking(str(distribution), words):
                lacking.setdefault((distribution, word), []).extend(want.hosts)
    return FoundPackages(tuple(files.values()), lacking=tuple(_sentences(lacking, cure)))


def _sentences(lacking: Mapping[tuple[Distribution, str], Sequence[str]], cure: str) -> Iterator[str]:
    for (distribution, word), hosts in lacking.items():
        who = fold(list(dict.fromkeys(hosts)))
        if cure:
            yield f"the export has no {word} for {distribution}, which {who} needs; {cure}"
        elif word.startswith(_HEADERS):
            yield (
                f"the archive of {distribution} no longer has {word} for the running kernel of {who}; "
                f"boot a kernel that the archive has, run {Command('audit')}, and mirror again"
            )
        else:
            yield f"the archive of {distribution} has no package {word}, which {who} needs"
