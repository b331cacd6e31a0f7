"""The packages of distributions that hosts get from the mirror: each a file by its sha256, as a lock file names them.

The lock file stands beside the stack's other one, and is written by ``invoke mirror`` alone (``aptarchive`` resolves):

    {"debian-12": {
      "wanted": [["build-essential", "dkms"]],
      "packages": [
        {"package": "dkms", "version": "3.0.10-8", "url": "…", "sha256": "…", "size": 41012, "needs": ["make"]}]}}

``wanted`` are sets of packages that hosts want together; ``needs`` are those of the list that a package may ask for.
``others`` are packages of repositories that a host has on its own disk, such as a toolkit's, and what they may ask for.
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

SUFFIX = ".packages.json"  #: of the lock file; before it stands the name of the stack's other one


class MirroredDeb(RoleFile):
    """A package file of a distribution: which package at which version, and the packages that it may ask for."""

    package: Name
    version: DebianVersion
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockedDeb:
    """A package as it stands in the lock file."""

    package: Name
    version: DebianVersion
    url: Url
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Field(gt=0)]  #: bytes
    needs: tuple[Name, ...] = ()

    def as_file(self, distribution: str) -> MirroredDeb:
        """The file that hosts with this distribution get; its name says of which, since each has its own."""
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
    """The packages of one distribution in the lock file."""

    wanted: tuple[tuple[str, ...], ...] = ()
    packages: tuple[LockedDeb, ...] = ()
    others: Mapping[Name, tuple[Name, ...]] = field(default_factory=dict)

    def lacking(self, words: Iterable[str]) -> tuple[str, ...]:
        """Those of the words, ``name`` or ``name=version``, that it does not hold, nor knows as one of ``others``."""
        versions = {deb.package: deb.version for deb in self.packages}

        def is_here(word: str) -> bool:
            name, _, version = word.partition("=")
            return name in self.others or (name in versions and version in {"", versions[name]})

        return tuple(word for word in words if not is_here(word))


def reached(names: Iterable[str], needs: Callable[[str], Iterable[str]]) -> set[str]:
    """These names, with all that they need, and what that needs in turn.

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


Locked = Mapping[str, LockedPackages]  #: by distribution: ``debian-12``


def packages_lock(store: Store, stack: str) -> Path:
    """The lock file of a stack's packages: beside its other lock file."""
    other = store.lock_file(stack)
    return other.with_name(other.stem + SUFFIX)


def parse_locked(text: str, where: Path) -> Locked:
    """What a lock file says. Raises ``InputError`` for a damaged one."""
    try:
        return adapter(dict[str, LockedPackages]).validate_json(text)
    except ValueError as error:
        raise damaged(where, str(error).splitlines()[0]) from error


def read_locked(path: Path) -> Locked:
    """What the lock file says, nothing if it does not exist. Raises ``InputError`` for a damaged file."""
    try:
        return parse_locked(path.read_text("utf-8"), path)
    except FileNotFoundError:
        return {}


def write_locked(path: Path, locked_packages: Locked) -> None:
    """Write the lock file, whole or not at all, with a line for each package, so that a change of it can be read.

    Raises ``ArtifactError``.
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
    """The files of a lock file, by distribution and by package. Compared by identity: a fleet shares a few of them."""

    locked: Locked = field(default_factory=dict)

    @cached_property
    def distributions(self) -> Mapping[str, Mapping[str, MirroredDeb]]:
        """Distribution (``debian-12``) → name of a package → its file."""
        return {
            distribution: {deb.package: deb.as_file(distribution) for deb in packages.packages}
            for distribution, packages in self.locked.items()
        }

    @cached_property
    def files(self) -> tuple[MirroredDeb, ...]:
        """All of them."""
        return tuple(deb for debs in self.distributions.values() for deb in debs.values())

    def lacking(self, distribution: str, words: Iterable[str]) -> tuple[str, ...]:
        """Those of the words (``name`` or ``name=version``) that it does not have for this distribution."""
        return self.locked.get(distribution, LockedPackages()).lacking(words)

    def needed_by_others(self, distribution: str, names: Iterable[str]) -> tuple[str, ...]:
        """What these packages of repositories on a host's own disk may ask for of the distribution."""
        others = self.locked.get(distribution, LockedPackages()).others
        return tuple(dict.fromkeys(need for name in names for need in others.get(name, ())))

    def closure(
        self, distribution: str, names: Iterable[str], installed: Collection[tuple[str, str]] = ()
    ) -> tuple[MirroredDeb, ...]:
        """The files of these packages, and of all that they may ask for and that is not ``installed``, which are names
        with versions. What is installed at another version is among them: apt may have to move it."""
        debs = self.distributions.get(distribution, {})

        def missing(name: str) -> Iterable[str]:
            return (need for need in debs[name].needs if need in debs and (need, debs[need].version) not in installed)

        return tuple(debs[name] for name in sorted(reached((name for name in names if name in debs), missing)))

    def files_for(self, distribution: str, words: Iterable[str]) -> tuple[MirroredDeb, ...]:
        """The files that a host which has nothing takes with these words (``name`` or ``name=version``)."""
        names = [word.partition("=")[0] for word in words]
        return self.closure(distribution, (*names, *self.needed_by_others(distribution, names)))
