"""Local directories that replace downloads of stacks' files: a directory of the user, or an export directory."""

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
    """A local directory with files of stacks, used before downloads."""

    def find(self, artifact: AnyArtifact, wanted: str | None, /) -> Path | None:
        """Return the path of the artifact's file with the sha256 ``wanted`` if known; ``None`` if the file must be
        downloaded.

        Raises ``ArtifactError`` if the file is missing and must not be downloaded.
        """

    def pins(self, lock: str, /) -> Mapping[str, Pin]:
        """Return the exported pins (artifact → pin) in the lock file with the name ``lock``."""

    def packages(self, lock: str, /) -> Path | None:
        """Return the path of the exported lock file of packages ``lock``; ``None`` to resolve packages on this
        machine.
        """


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """A directory with files of the user, found by name. Raises ``InputError`` for a path that is not a directory."""

    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise InputError(f"'{self.folder}' is not a directory; give a directory with files", "--from")

    def find(self, artifact: AnyArtifact, wanted: str | None, /) -> Path | None:
        """Return a file with the artifact's name in the directory or below, else a file with the artifact's size and
        checksum.

        The search by checksum finds package files with another name.
        """
        direct = self.folder / artifact.file
        if direct.is_file():
            return direct
        files = [(Path(folder) / name) for folder, _, names in os.walk(self.folder) for name in names]
        if named := next((path for path in files if path.name == artifact.file), None):
            return named
        alike = (path for path in files if wanted and artifact.size and _size(path) == artifact.size)
        return next((path for path in alike if sha256_of(path) == wanted), None)

    def pins(self, _lock: str, /) -> Mapping[str, Pin]:
        """Return an empty mapping: the user's directory has no pins."""
        return {}

    def packages(self, _lock: str, /) -> None:
        """Return ``None``: the user's directory has no lock file of packages."""
        return


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Exported:
    """A directory that ``export`` wrote, perhaps on another machine. Raises ``InputError`` for any other directory."""

    folder: Path

    def __post_init__(self) -> None:
        if not (self.folder / SUMS).is_file():
            raise InputError(
                f"'{self.folder}' has no {SUMS}; give a directory written by `mirror --export`", "--import"
            )

    def find(self, artifact: AnyArtifact, wanted: str | None, /) -> Path | None:
        """Return the path of the file with the checksum ``wanted``. Raises ``ArtifactError`` if it is missing."""
        path = Store(self.folder).path(wanted, artifact.file) if wanted else None
        if path is None or not path.is_file():
            which = f" with the sha256 {wanted}" if wanted else ""
            raise ArtifactError(f"{self.folder} does not contain {artifact.file}{which}; {EXPORT}")
        return path

    def pins(self, lock: str, /) -> Mapping[str, Pin]:
        """Return the pins in the exported lock file ``lock``. Raises ``InputError`` if this file is damaged."""
        return read_pins(self.folder / PINS / lock)

    def packages(self, lock: str, /) -> Path:
        """Return the path of the exported lock file of packages ``lock``."""
        return self.folder / PINS / lock
