"""The store: stacks' files on this machine, found by sha256, and pinned checksums for files whose vendors publish none.

A file gets its final name in the store only after the verification of its checksum.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import yaml
from pydantic import Field, ValidationError

from hostwright.common.command import Command
from hostwright.common.errors import ArtifactError, InputError
from hostwright.common.input.adapter import adapter
from hostwright.common.places import refused, state_root, sync, write_whole
from hostwright.common.text import count
from hostwright.common.userpaths import expanded

if TYPE_CHECKING:
    from hostwright.stack.stack import Stack

STORE_VARIABLE = "HOSTWRIGHT_ARTIFACTS"
_LOCK_HEADER = f"# Checksums that nobody publishes, pinned at first sight by {Command('mirror')}. Commit this file.\n"


class AnyArtifact(Protocol):
    """The properties of an artifact that the store uses."""

    @property
    def name(self) -> str:
        """Name of the artifact in the stack."""

    @property
    def file(self) -> str:
        """File name, without a directory."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the file, best first."""

    @property
    def sha256(self) -> str | None:
        """Checksum in lowercase hex; ``None`` if the vendor does not publish one."""

    @property
    def size(self) -> int | None:
        """Size in bytes; ``None`` if unknown."""

    @property
    def stand_in(self) -> bool | str:
        """Whether the file replaces the vendor's file; may be a text that describes the file."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A file's checksum and size at its first download, recorded in a lock file."""

    file: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class _LockFile:
    artifacts: dict[str, Pin] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Store:
    """The files under ``root``. ``lock_dirs`` are the directories of stacks: a stack's lock file is next to the stack
    file, or in the first of these directories if none of them has the stack.
    """

    root: Path
    lock_dirs: tuple[Path, ...] = ()

    @classmethod
    def default(cls, lock_dirs: tuple[Path, ...] = ()) -> Store:
        """Return the store in ``$HOSTWRIGHT_ARTIFACTS``, else in the user's cache directory. If the user has no home
        directory (as for cron in a container), the store is in the state folder.
        """
        if named := os.environ.get(STORE_VARIABLE):
            return cls(expanded(named), lock_dirs)
        try:
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hostwright"
        except RuntimeError:
            cache = state_root()
        return cls(cache / "artifacts", lock_dirs)

    def path(self, sha256: str, file: str) -> Path:
        """Return the path in the store for a file with this checksum, whether the file exists or not."""
        return self.root / sha256[:2] / sha256 / file

    def locate(self, artifact: AnyArtifact) -> Path:
        """Return the path of an artifact's file in the store, without reading it. Raises ``ArtifactError`` if the file
        is missing or has the wrong size.
        """
        if artifact.sha256 is None:
            raise ArtifactError(f"{artifact.name}: {artifact.file} has no pinned checksum yet; run {Command('mirror')}")
        path = self.path(artifact.sha256, artifact.file)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise ArtifactError(
                f"{artifact.name}: {artifact.file} is not on this machine; run {Command('mirror')} (with --from DIR "
                "for a file that you already have)"
            ) from None
        if artifact.size is not None and size != artifact.size:
            raise ArtifactError(
                f"{artifact.name}: {path} has {size:,} bytes, expected {artifact.size:,}; run {Command('mirror')} again"
            )
        return path

    def size_of(self, artifact: AnyArtifact) -> int:
        """Return the size of an artifact in bytes: from the stack, else from the file in the store, else 0."""
        if artifact.size is not None or artifact.sha256 is None:
            return artifact.size or 0
        try:
            return self.path(artifact.sha256, artifact.file).stat().st_size
        except OSError:
            return 0

    def lock_file(self, stack: str) -> Path:
        """The path of a stack's lock file, next to the stack file."""
        beside = (folder for folder in self.lock_dirs if (folder / f"{stack}.yml").exists())
        return next(beside, self.lock_dirs[0]) / f"{stack}.lock.yml"

    def pinned(self, stack: Stack) -> Stack:
        """Return the stack; artifacts without checksum get the checksum and size pinned in its lock file. Raises
        ``InputError``.
        """
        pins = read_pins(self.lock_file(stack.name))
        known = {
            name: artifact.model_copy(update={"sha256": pins[name].sha256, "size": pins[name].size})
            for name, artifact in stack.artifacts.items()
            if artifact.sha256 is None and name in pins and pins[name].file == artifact.file
        }
        return stack.model_copy(update={"artifacts": {**stack.artifacts, **known}}) if known else stack


def read_pins(path: Path) -> dict[str, Pin]:
    """Read the pins in a lock file, by artifact name; empty for a missing file. Raises ``InputError`` for a damaged
    file.
    """
    try:
        return adapter(_LockFile).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")) or {}).artifacts
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise damaged(path, _why(error)) from error


def damaged(lock: Path, why: str) -> InputError:
    """Return the error for a lock file that cannot be parsed."""
    return InputError(
        f"this lock file is damaged ({why}); restore it from version control, or delete it and run {Command('mirror')}",
        str(lock),
    )


def _why(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")


def write_pin(path: Path, name: str, pin: Pin) -> None:
    """Add a pin to a lock file, atomically. Raises ``ArtifactError`` if the file cannot be written."""
    try:
        with locked(path.parent):
            pins = {**read_pins(path), name: pin}
            rows = {key: asdict(entry) for key, entry in sorted(pins.items())}
            text = _LOCK_HEADER + yaml.safe_dump({"artifacts": rows}, sort_keys=False, allow_unicode=True)
            write_whole(path, text.encode(), 0o644)
    except OSError as error:
        raise ArtifactError(f"the checksum of {pin.file} cannot be pinned in {path}: {refused(error)}") from error


def settle(temporary: Path, final: Path) -> None:
    """Rename a finished file to its final name, durably: after a crash, the final file is complete or absent."""
    final.parent.mkdir(parents=True, exist_ok=True)
    sync(temporary)
    temporary.replace(final)
    sync(final.parent)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes of Hostwright while the block runs. A missing folder is created."""
    descriptor = _lock(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    """Lock a folder; return its descriptor. If its former holder has removed the folder, create it again."""
    from filelock import lock_descriptor

    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError), ExitStack() as opened:
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, descriptor)
            lock_descriptor(descriptor)
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                opened.pop_all()
                return descriptor


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file in lowercase hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stand_ins_line(files: Iterable[str]) -> str:
    """Warning with the number of stand-in files and their texts, so that a lab is not mistaken for real hosts."""
    unique = sorted({*files})
    texts = dict.fromkeys(found[1] for file in unique if (found := re.search(r" \((.*)\)$", file)))
    line = f"lab stack: {count(len(unique), 'stand-in file')}, not the vendor's own: see docs/lab.md"
    return "; ".join((line, *texts))
