"""Packages of distributions that hosts receive from the mirror. A lock file lists the package files, each with its
sha256.

The lock file is next to the stack's other lock file. Only ``invoke mirror`` writes it (see ``aptarchive``):

    {"debian-12": {
      "wanted": [["build-essential", "dkms"]],
      "packages": [
        {"package": "dkms", "version": "3.0.10-8", "url": "…", "sha256": "…", "size": 41012, "needs": ["make"]}]}}

``wanted`` are sets of packages to install together. ``packages`` are these packages and all their dependencies.
``needs`` are the dependencies of one package among ``packages``. ``others`` maps packages from repositories on a host's
disk, such as a toolkit's, to their dependencies among ``packages``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import Field

from hostwright.common.errors import ArtifactError
from hostwright.common.input.adapter import adapter
from hostwright.common.places import refused, write_whole
from hostwright.stack.stack import RoleFile
from hostwright.stack.stackvalues import DebianVersion, Name, Url
from hostwright.stack.store.artifacts import Store, damaged, locked

SUFFIX = ".packages.json"


class MirroredDeb(RoleFile):
    """An artifact that is a package file of a distribution, with package name, version and dependencies."""

    package: Name
    version: DebianVersion
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockedDeb:
    """A package in a lock file of packages, with the address and checksum of the package's file."""

    package: Name
    version: DebianVersion
    url: Url
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Field(gt=0)]  #: size of the package file in bytes
    needs: tuple[Name, ...] = ()

    def as_file(self, distribution: str) -> MirroredDeb:
        """Return the package as an artifact for hosts with this distribution."""
        name = f"{distribution}-{self.package}-{self.version}".lower()
        return MirroredDeb(
            name=name.replace(":", "-").replace("~", "-"),
            file=PurePosixPath(unquote(urlsplit(self.url).path)).name,
            urls=(self.url,),
            sha256=self.sha256,
            size=self.size,
            package=self.package,
            version=self.version,
            needs=self.needs,
        )


@dataclass(frozen=True, slots=True)
class LockedPackages:
    """The entry for one distribution in a lock file of packages."""

    wanted: tuple[tuple[str, ...], ...] = ()
    packages: tuple[LockedDeb, ...] = ()
    others: Mapping[Name, tuple[Name, ...]] = field(default_factory=dict)

    def lacking(self, words: Iterable[str]) -> tuple[str, ...]:
        """Return those of ``words`` (``name`` or ``name=version``) that are in neither ``packages`` nor ``others``."""
        versions = {deb.package: deb.version for deb in self.packages}

        def is_here(word: str) -> bool:
            name, _, version = word.partition("=")
            return name in self.others or (name in versions and version in {"", versions[name]})

        return tuple(word for word in words if not is_here(word))


def reached(names: Iterable[str], needs: Callable[[str], Iterable[str]]) -> set[str]:
    """Return ``names`` with all their direct and indirect dependencies. ``needs`` returns direct dependencies.

    >>> sorted(reached(["dkms"], {"dkms": ["make"], "make": ["libc6"], "libc6": ["dkms"], "gcc": []}.__getitem__))
    ['dkms', 'libc6', 'make']
    """
    ahead = [*names]
    found = set(ahead)
    while ahead:
        new = set(needs(ahead.pop())) - found
        found |= new
        ahead += new
    return found


Locked = Mapping[str, LockedPackages]  #: distribution (``debian-12``) → locked packages of this distribution


def packages_lock(store: Store, stack: str) -> Path:
    """Return the path of the lock file for the packages of ``stack``, next to the stack's other lock file."""
    other = store.lock_file(stack)
    return other.with_name(other.stem + SUFFIX)


def parse_locked(text: str, where: Path) -> Locked:
    """Parse ``text``, a lock file of packages. Raises ``InputError`` with the path ``where`` for a damaged file."""
    try:
        return adapter(dict[str, LockedPackages]).validate_json(text)
    except ValueError as error:
        raise damaged(where, str(error).splitlines()[0]) from error


def read_locked(path: Path) -> Locked:
    """Read the lock file of packages ``path``; empty if it does not exist. Raises ``InputError`` for a damaged file."""
    try:
        return parse_locked(path.read_text("utf-8"), path)
    except FileNotFoundError:
        return {}


def write_locked(path: Path, locked_packages: Locked) -> None:
    """Write a lock file of packages, atomically and with one line per package for diffs.

    Raises ``ArtifactError`` if it cannot be written.
    """
    parts = []
    for distribution, packages in sorted(locked_packages.items()):
        data = adapter(dict[str, LockedPackages]).dump_python({distribution: packages}, mode="json")[distribution]
        wanted = ",\n".join(f"   {json.dumps(words)}" for words in data["wanted"])
        rows = ",\n".join(f"   {json.dumps(row)}" for row in data["packages"])
        others = ",\n".join(f"   {json.dumps(name)}: {json.dumps(needs)}" for name, needs in data["others"].items())
        lists = f'"wanted": [\n{wanted}],\n  "packages": [\n{rows}],\n  "others": {{\n{others}}}'
        parts.append(f" {json.dumps(distribution)}: {{\n  {lists}}}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent):
            write_whole(path, ("{\n" + ",\n".join(parts) + "\n}\n").encode(), 0o644)
    except OSError as error:
        raise ArtifactError(f"the packages of hosts cannot be pinned in {path}: {refused(error)}") from error


@dataclass(frozen=True, eq=False)
class PackageMirror:
    """The package files that a lock file lists, by distribution and package.

    Two objects are equal only if identical, because comparing contents would be slow.
    """

    locked: Locked = field(default_factory=dict)

    @cached_property
    def distributions(self) -> Mapping[str, Mapping[str, MirroredDeb]]:
        """Distribution (``debian-12``) → package name → package file."""
        return {
            distribution: {deb.package: deb.as_file(distribution) for deb in packages.packages}
            for distribution, packages in self.locked.items()
        }

    @cached_property
    def files(self) -> tuple[MirroredDeb, ...]:
        """The package files of all distributions."""
        return tuple(deb for debs in self.distributions.values() for deb in debs.values())

    def lacking(self, distribution: str, words: Iterable[str]) -> tuple[str, ...]:
        """Return those of ``words`` (``name`` or ``name=version``) that the mirror lacks for ``distribution``."""
        return self.locked.get(distribution, LockedPackages()).lacking(words)

    def needed_by_others(self, distribution: str, names: Iterable[str]) -> tuple[str, ...]:
        """Return the packages of ``distribution`` that are needed by ``names``, packages in repositories on a host's
        disk.
        """
        others = self.locked.get(distribution, LockedPackages()).others
        return tuple(dict.fromkeys(need for name in names for need in others.get(name, ())))

    def closure(
        self, distribution: str, names: Iterable[str], installed: Collection[tuple[str, str]] = ()
    ) -> tuple[MirroredDeb, ...]:
        """Return the files of the packages ``names`` and of all their dependencies, except packages in ``installed``.

        ``installed`` has pairs of name and version, so a package with another version is included.
        """
        debs = self.distributions.get(distribution, {})

        def missing(name: str) -> Iterable[str]:
            return (need for need in debs[name].needs if need in debs and (need, debs[need].version) not in installed)

        return tuple(debs[name] for name in sorted(reached((name for name in names if name in debs), missing)))

    def files_for(self, distribution: str, words: Iterable[str]) -> tuple[MirroredDeb, ...]:
        """Return the files that a host without packages needs to install ``words`` (``name`` or ``name=version``)."""
        names = [word.partition("=")[0] for word in words]
        return self.closure(distribution, (*names, *self.needed_by_others(distribution, names)))
