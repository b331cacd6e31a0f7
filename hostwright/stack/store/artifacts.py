"""The store: stacks' files on this machine, found by sha256, and checksums pinned at the first download.

A file gets its final name in the store only after its checksum has been verified.
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
        """Name of the file, without a directory."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the file, best first."""

    @property
    def sha256(self) -> str | None:
        """Checksum in lowercase hex; ``None`` if the vendor does not publish one."""

    @property
    def size(self) -> int | None:
        """Size of the file in bytes; ``None`` if it is unknown."""

    @property
    def stand_in(self) -> bool | str:
        """Whether the file replaces the vendor's file; may be a text about the replacement."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The checksum and size of a file at its first download, recorded in a lock file."""

    file: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class _LockFile:
    artifacts: dict[str, Pin] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Store:
    """The files of stacks below ``root``. ``lock_dirs`` are the directories of stacks and of their lock files."""

    root: Path
    lock_dirs: tuple[Path, ...] = ()

    @classmethod
    def default(cls, lock_dirs: tuple[Path, ...] = ()) -> Store:
        """Return the store in ``$HOSTWRIGHT_ARTIFACTS``, else in the user's cache directory.

        For a user without a home directory, the store is in the state directory.
        """
        if named := os.environ.get(STORE_VARIABLE):
            return cls(expanded(named), lock_dirs)
        try:
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hostwright"
        except RuntimeError:
            cache = state_root()
        return cls(cache / "artifacts", lock_dirs)

    def path(self, sha256: str, file: str) -> Path:
        """Return the path in the store of ``file`` with the checksum ``sha256``."""
        return self.root / sha256[:2] / sha256 / file

    def locate(self, artifact: AnyArtifact) -> Path:
        """Return the path of the artifact's file in the store, without reading the file.

        Raises ``ArtifactError`` if the file is missing or has the wrong size.
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
        """Return the size of the artifact's file in bytes: from the stack, else from the store, else 0."""
        if artifact.size is not None or artifact.sha256 is None:
            return artifact.size or 0
        try:
            return self.path(artifact.sha256, artifact.file).stat().st_size
        except OSError:
            return 0

    def lock_file(self, stack: str) -> Path:
        """Return the path of the lock file for ``stack``: next to the stack file, else in the first of
        ``lock_dirs``.
        """
        beside = (folder for folder in self.lock_dirs if (folder / f"{stack}.yml").exists())
        return next(beside, self.lock_dirs[0]) / f"{stack}.lock.yml"

    def pinned(self, stack: Stack) -> Stack:
        """Return ``stack`` with the checksums and sizes in its lock file, for artifacts without a checksum.

        Raises ``InputError`` if the lock file is damaged.
        """
        pins = read_pins(self.lock_file(stack.name))
        known = {
            name: artifact.model_copy(update={"sha256": pins[name].sha256, "size": pins[name].size})
            for name, artifact in stack.artifacts.items()
            if artifact.sha256 is None and name in pins and pins[name].file == artifact.file
        }
        return stack.model_copy(update={"artifacts": {**stack.artifacts, **known}}) if known else stack


def read_pins(path: Path) -> dict[str, Pin]:
    """Read the pins in the lock file ``path``: artifact → pin; empty if the file does not exist.

    Raises ``InputError`` for a damaged file.
    """
    try:
        return adapter(_LockFile).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")) or {}).artifacts
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise damaged(path, _why(error)) from error


def damaged(lock: Path, why: str) -> InputError:
    """Return the error for the lock file ``lock`` that cannot be parsed for the reason ``why``."""
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
    """Add the ``pin`` of the artifact ``name`` to the lock file ``path``. Raises ``ArtifactError`` on failure."""
    try:
        with locked(path.parent):
            pins = {**read_pins(path), name: pin}
            rows = {key: asdict(entry) for key, entry in sorted(pins.items())}
            text = _LOCK_HEADER + yaml.safe_dump({"artifacts": rows}, sort_keys=False, allow_unicode=True)
            write_whole(path, text.encode(), 0o644)
    except OSError as error:
        raise ArtifactError(f"the checksum of {pin.file} cannot be pinned in {path}: {refused(error)}") from error


def settle(temporary: Path, final: Path) -> None:
    """Rename the complete file ``temporary`` to ``final``. After a crash, ``final`` is complete or absent."""
    final.parent.mkdir(parents=True, exist_ok=True)
    sync(temporary)
    temporary.replace(final)
    sync(final.parent)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock ``folder`` against other processes of Hostwright during the context. A missing folder is created."""
    descriptor = _lock(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    """Lock ``folder``, and create it again if the last holder of the lock has removed it."""
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
    """Return a warning with the number and texts of files that replace files of the vendor."""
    unique = sorted({*files})
    texts = dict.fromkeys(found[1] for file in unique if (found := re.search(r" \((.*)\)$", file)))
    line = f"lab stack: {count(len(unique), 'stand-in file')}, not the vendor's own: see docs/lab.md"
    return "; ".join((line, *texts))
