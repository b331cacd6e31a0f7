"""Where files of stacks are taken from on this machine instead of being downloaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hostwright.common.errors import ArtifactError, InputError
from hostwright.stack.store.artifacts import AnyArtifact, Pin, Store, read_pins

SUMS, PINS = "SHA256SUMS", "pins"
EXPORT = "run `invoke mirror --export DIR` on a machine with a network, with the same inventory"


class FileSource(Protocol):
    """A directory with files of stacks."""

    def find(self, artifact: AnyArtifact, wanted: str | None, /) -> Path | None:
        """The file of an artifact, of which ``wanted`` is the sha256 where one is known; ``None``: download it. Raises
        ``ArtifactError`` where it is not there and may not be downloaded."""
        ...

    def pins(self, lock: str, /) -> Mapping[str, Pin]:
        """The pins that came with the files, of the stack with this lock file."""
        ...


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """A directory into which the user has put files, by their names. Raises ``InputError`` if it is none."""

    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise InputError(f"{self.folder} is not a directory", "--from")

    def find(self, artifact: AnyArtifact, _wanted: str | None, /) -> Path | None:
        """The file in the directory itself, else anywhere below it."""
        direct = self.folder / artifact.file
        if direct.is_file():
            return direct
        below = (Path(folder) / artifact.file for folder, _, files in os.walk(self.folder) if artifact.file in files)
        return next(below, None)

    def pins(self, _lock: str, /) -> Mapping[str, Pin]:
        """None: who put the files there knows their names alone."""
        return {}


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
