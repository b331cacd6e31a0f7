"""Where files of stacks are taken from on this machine instead of being downloaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hostwright.common.command import Command
from hostwright.common.errors import ArtifactError, InputError
from hostwright.stack.store.artifacts import AnyArtifact, Pin, Store, read_pins, sha256_of

SUMS, PINS = "SHA256SUMS", "pins"
EXPORT = f"run {Command('mirror', export='DIR')} on a machine with a network, with the same inventory"


class FileSource(Protocol):
    """A directory with files of stacks."""

    def find(self, artifact: AnyArtifact, wanted: str | None, /) -> Path | None:
        """The file of an artifact, of which ``wanted`` is the sha256 where one is known; ``None``: download it. Raises
        ``ArtifactError`` where it is not there and may not be downloaded."""

    def pins(self, lock: str, /) -> Mapping[str, Pin]:
        """The pins that came with the files, of the stack with this lock file."""

    def packages(self, lock: str, /) -> Path | None:
        """Where the lock file of packages with this name would have come with the files; ``None``: from nowhere, and
        this machine finds packages itself."""


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """A directory into which the user has put files, by their names. Raises ``InputError`` if it is none."""

    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise InputError(f"{self.folder} is not a directory", "--from")

    def find(self, artifact: AnyArtifact, wanted: str | None, /) -> Path | None:
        """The file in the directory itself, else anywhere below it, else one of another name with its size and sum: apt
        names a package that it downloads otherwise than the archive does."""
        direct = self.folder / artifact.file
        if direct.is_file():
            return direct
        files = [(Path(folder) / name) for folder, _, names in os.walk(self.folder) for name in names]
        if named := next((path for path in files if path.name == artifact.file), None):
            return named
        alike = (path for path in files if wanted and artifact.size and _size(path) == artifact.size)
        return next((path for path in alike if sha256_of(path) == wanted), None)

    def pins(self, _lock: str, /) -> Mapping[str, Pin]:
        """None: who put the files there knows their names alone."""
        return {}

    def packages(self, _lock: str, /) -> None:
        """From nowhere, for the same reason."""
        return


def _size(path: Path) -> int | None:
    """``None`` for what is no file, or nothing any more."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Exported:
    """A directory that ``export`` wrote, perhaps on another machine. Raises ``InputError`` if it is none."""

    folder: Path

    def __post_init__(self) -> None:
        if not (self.folder / SUMS).is_file():
            raise InputError(f"{self.folder} holds no {SUMS}, so it was not written by `mirror --export`", "--import")

    def find(self, artifact: AnyArtifact, wanted: str | None, /) -> Path | None:
        """The file with this sum. Raises ``ArtifactError`` if it is not there."""
        path = Store(self.folder).path(wanted, artifact.file) if wanted else None
        if path is None or not path.is_file():
            which = f" with the sha256 {wanted}" if wanted else ""
            raise ArtifactError(f"{self.folder} does not hold {artifact.file}{which}: {EXPORT}")
        return path

    def pins(self, lock: str, /) -> Mapping[str, Pin]:
        """What was pinned where it was exported. Raises ``InputError`` for a damaged file."""
        return read_pins(self.folder / PINS / lock)

    def packages(self, lock: str, /) -> Path:
        """That of the machine which exported them."""
        return self.folder / PINS / lock
