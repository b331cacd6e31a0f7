"""The store: stacks' files on this machine, each under its sha256, and pins for those without a published checksum.

A file in the store has its final name, which it gets only after its checksum was verified.
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
    """The properties of a stack's artifact that are used here."""

    @property
    def name(self) -> str:
        """Its name in the stack."""

    @property
    def file(self) -> str:
        """Its file name, without a directory."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Where it can be fetched from, best first."""

    @property
    def sha256(self) -> str | None:
        """Its checksum, in lower-case hex."""

    @property
    def size(self) -> int | None:
        """Its size in bytes."""

    @property
    def stand_in(self) -> bool | str:
        """Whether it is not the vendor's own file; a text says what it is."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A file's checksum and size when it was first seen."""

    file: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class _LockFile:
    artifacts: dict[str, Pin] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Store:
    """The files under ``root``. ``lock_dirs`` are the directories of stacks: a stack's pins are kept beside it, or in
    the first of these if the stack is in none of them."""

    root: Path
    lock_dirs: tuple[Path, ...] = ()

    @classmethod
    def default(cls, lock_dirs: tuple[Path, ...] = ()) -> Store:
        """The store in ``$HOSTWRIGHT_ARTIFACTS``, else in the user's cache directory; where there is no home directory,
        as in cron of a container, with the records of runs."""
        if named := os.environ.get(STORE_VARIABLE):
            return cls(expanded(named), lock_dirs)
        try:
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hostwright"
        except RuntimeError:
            cache = state_root()
        return cls(cache / "artifacts", lock_dirs)

    def path(self, sha256: str, file: str) -> Path:
        """The path of a file with this checksum, whether it exists or not."""
        return self.root / sha256[:2] / sha256 / file

    def locate(self, artifact: AnyArtifact) -> Path:
        """The file of an artifact. Raises ``ArtifactError`` if it is missing; its content is not read."""
        if artifact.sha256 is None:
            raise ArtifactError(
                f"{artifact.name}: no checksum of {artifact.file} is known yet: run {Command('mirror')}"
            )
        path = self.path(artifact.sha256, artifact.file)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise ArtifactError(
                f"{artifact.name}: {artifact.file} is not on this machine: run {Command('mirror')} (with --from DIR "
                "for a file that you have already)"
            ) from None
        if artifact.size is not None and size != artifact.size:
            raise ArtifactError(
                f"{artifact.name}: {path} has {size:,} bytes instead of {artifact.size:,}: "
                f"run {Command('mirror')} again"
            )
        return path

    def size_of(self, artifact: AnyArtifact) -> int:
        """How many bytes it has: as its stack says, else as its file here has; 0 where nobody knows it yet."""
        if artifact.size is not None or artifact.sha256 is None:
            return artifact.size or 0
        try:
            return self.path(artifact.sha256, artifact.file).stat().st_size
        except OSError:
            return 0

    def lock_file(self, stack: str) -> Path:
        """The file with a stack's pins: beside the stack."""
        beside = (folder for folder in self.lock_dirs if (folder / f"{stack}.yml").exists())
        return next(beside, self.lock_dirs[0]) / f"{stack}.lock.yml"

    def pinned(self, stack: Stack) -> Stack:
        """The stack with pinned checksums and sizes for artifacts that have none. Raises ``InputError``."""
        pins = read_pins(self.lock_file(stack.name))
        known = {
            name: artifact.model_copy(update={"sha256": pins[name].sha256, "size": pins[name].size})
            for name, artifact in stack.artifacts.items()
            if artifact.sha256 is None and name in pins and pins[name].file == artifact.file
        }
        return stack.model_copy(update={"artifacts": {**stack.artifacts, **known}}) if known else stack


def read_pins(path: Path) -> dict[str, Pin]:
    """The pins in a lock file, none if it does not exist. Raises ``InputError`` for a damaged file."""
    try:
        return adapter(_LockFile).validate_python(yaml.safe_load(path.read_text(encoding="utf-8")) or {}).artifacts
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise damaged(path, _why(error)) from error


def damaged(lock: Path, why: str) -> InputError:
    """The error for a lock file that cannot be understood."""
    return InputError(
        f"this lock file cannot be understood ({why}): take it back from version control, or delete it and run "
        f"{Command('mirror')}",
        str(lock),
    )


def _why(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")


def write_pin(path: Path, name: str, pin: Pin) -> None:
    """Add a pin to a lock file, whole or not at all. Raises ``ArtifactError`` if it cannot be written."""
    try:
        with locked(path.parent):
            pins = {**read_pins(path), name: pin}
            rows = {key: asdict(entry) for key, entry in sorted(pins.items())}
            text = _LOCK_HEADER + yaml.safe_dump({"artifacts": rows}, sort_keys=False, allow_unicode=True)
            write_whole(path, text.encode(), 0o644)
    except OSError as error:
        raise ArtifactError(f"the checksum of {pin.file} cannot be pinned in {path}: {refused(error)}") from error


def settle(temporary: Path, final: Path) -> None:
    """Give a finished file its final name; after a crash, it is complete or absent."""
    final.parent.mkdir(parents=True, exist_ok=True)
    sync(temporary)
    temporary.replace(final)
    sync(final.parent)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Only one process at a time works in this folder, which is made if it is missing."""
    descriptor = _lock(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    """The folder, open and locked. Its previous holder may have removed it, and the lock on a removed folder is
    void."""
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
    """The checksum of a file, in lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stand_ins_line(files: Iterable[str]) -> str:
    """The line that says how many files are stand-ins, so that nobody takes a lab for real hosts, with their texts."""
    unique = sorted({*files})
    texts = dict.fromkeys(found[1] for file in unique if (found := re.search(r" \((.*)\)$", file)))
    line = f"lab stack: {count(len(unique), 'stand-in file')}, not the vendor's own: see docs/lab.md"
    return "; ".join((line, *texts))
