"""Finds versions of packages, and all their dependencies, in the archive of the hosts' distribution.

apt resolves dependencies for a host without any package, so that the files suffice for every host with this
distribution. A host then receives only the packages that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hostwright.common.errors import ArtifactError
from hostwright.stack.store.aptroot import AptArchive, Distribution, PrivateApt
from hostwright.stack.store.artifacts import locked
from hostwright.stack.store.debs import LockedDeb, LockedPackages, reached


def resolve(
    distribution: Distribution,
    wanted: Sequence[Sequence[str]],
    archive: AptArchive,
    folder: Path,
    before: LockedPackages,
    *,
    repositories: Sequence[Path] = (),
) -> LockedPackages:
    """Return the packages for the words in ``wanted`` (``name`` or ``name=version``), and their dependencies.

    Each set of words is resolved separately, for a host without any package. Versions in ``before`` are used if the
    archive still has them. A word that neither the archive nor ``before`` has is omitted. ``folder`` is apt's working
    directory. ``repositories`` are package files with repositories that words in ``wanted`` may come from. Raises
    ``ArtifactError`` if apt cannot resolve the words.
    """
    with locked(folder):
        apt = PrivateApt(folder, distribution, archive)
        apt.prepare(before, repositories)
        known = apt.known({word for words in wanted for word in words})
        chosen: dict[str, tuple[str, str]] = {}
        for words in dict.fromkeys(tuple(word for word in words if word in known) for words in wanted):
            for name, version, url in apt.resolve(words):
                if chosen.setdefault(name, (version, url))[0] != version:
                    raise ArtifactError(
                        f"hosts with {distribution} require two versions of {name}, but only one can be mirrored"
                    )
        rows = {row["Package"]: row for row in apt.stanzas(chosen)}
    needs = _needs(rows)
    theirs = {name for name, (_, url) in chosen.items() if url.startswith(apt.local)}
    debs = {name: _locked(row, chosen[name][1], needs[name]) for name, row in rows.items() if name not in theirs}
    others = {name: tuple(sorted(_beyond(name, needs, theirs))) for name in sorted(theirs)}
    for deb in before.packages:
        now = debs.get(deb.package)
        if now is not None and now.version == deb.version and now.sha256 != deb.sha256:
            raise ArtifactError(
                f"the archive of {distribution} has replaced the file of {deb.package} {deb.version}. Its sha256 is "
                f"{now.sha256}, but the lock file has {deb.sha256}; `mirror --renew` accepts the new file"
            )
    unknown = {word for words in wanted for word in words} - known
    debs = {**_still(before, unknown), **debs}
    sets = tuple(dict.fromkeys(map(tuple, wanted)))
    return LockedPackages(sets, tuple(debs[name] for name in sorted(debs)), {**before.others, **others})


def _beyond(name: str, needs: Mapping[str, set[str]], theirs: set[str]) -> set[str]:
    return reached([name], lambda each: needs[each] if each in theirs else ()) - theirs


def _still(before: LockedPackages, words: Iterable[str]) -> dict[str, LockedDeb]:
    debs = {deb.package: deb for deb in before.packages}
    names = [word.partition("=")[0] for word in words if not before.lacking([word])]
    first = [*names, *(need for name in names for need in before.others.get(name, ()))]
    found = reached(first, lambda name: debs[name].needs if name in debs else ())
    return {name: debs[name] for name in found if name in debs}


def _locked(row: Mapping[str, str], url: str, needs: set[str]) -> LockedDeb:
    name, version = row["Package"], row["Version"]
    if not row.get("SHA256") or not row.get("Size"):
        raise ArtifactError(f"the archive has no sha256 of {name} {version}, so the package cannot be pinned")
    return LockedDeb(name, version, url, row["SHA256"], int(row["Size"]), tuple(sorted(needs)))


def _needs(rows: Mapping[str, Mapping[str, str]]) -> dict[str, set[str]]:
    provided: dict[str, set[str]] = {}
    for name, row in rows.items():
        for word in (name, *_names(row.get("Provides", ""))):
            provided.setdefault(word, set()).add(name)
    needs: dict[str, set[str]] = {}
    for name, row in rows.items():
        asked = (*_names(row.get("Pre-Depends", "")), *_names(row.get("Depends", "")))
        needs[name] = {package for word in asked for package in provided.get(word, ())} - {name}
    return needs


def _names(relation: str) -> Iterator[str]:
    """Yield the package names in ``relation``, a dependency field, including all alternatives.

    >>> list(_names("libc6 (>= 2.34), perl:any | perl5 (>> 5) [amd64], make"))
    ['libc6', 'perl', 'perl5', 'make']
    """
    for group in relation.split(","):
        for word in group.split("|"):
            name = word.strip().partition(" ")[0].partition(":")[0].partition("(")[0]
            if name:
                yield name
