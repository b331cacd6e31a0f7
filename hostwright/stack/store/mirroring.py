"""Fetches files of stacks into the store for ``invoke mirror``, and verifies them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable
from urllib.parse import urlsplit

from hostwright.common.command import Command
from hostwright.common.errors import ArtifactError
from hostwright.common.places import refused
from hostwright.common.text import count
from hostwright.stack.store.artifacts import (
    STORE_VARIABLE,
    AnyArtifact,
    Pin,
    Store,
    locked,
    read_pins,
    settle,
    sha256_of,
    write_pin,
)
from hostwright.stack.store.fetching import Unreached, discard, fetch, make_session

if TYPE_CHECKING:
    import requests

    from hostwright.stack.store.sources import FileSource

ANOTHER = f"set {STORE_VARIABLE} to a directory elsewhere"
ELSEWHERE = f"To use files that you already have, run {Command('mirror', from_='DIR')}"
#: origin of a file in the store: already in the store, copied from ``source``, or downloaded
Came = Literal["was there", "taken", "fetched"]
_INDEX = ""  #: key that stands for the package index of every ``BroughtFile`` in place of a server's name
_INCOMING = "incoming"  #: folder in the store for files whose download is incomplete


@runtime_checkable
class BroughtFile(Protocol):
    """An artifact without an address, fetched by its method ``bring``."""

    def bring(self, folder: Path, /) -> Path:
        """Fetch the file into the empty directory ``folder``; return its path. Raises ``ArtifactError`` on failure."""


class TransferProgress(Protocol):
    """Displays the progress of file transfers."""

    def show(self, file: str, done: int, total: int | None) -> None:
        """Show that ``done`` of ``total`` bytes of ``file`` have arrived; ``total`` is ``None`` if unknown."""

    def end(self, file: str, note: str) -> None:
        """Show that the transfer of ``file`` has ended; ``note`` is the result."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """A file in the store, and its origin. ``pinned`` is whether this run pinned the file's checksum."""

    name: str
    file: str
    path: Path
    sha256: str
    size: int
    came: Came
    pinned: bool
    stand_in: bool


def mirror(
    artifacts: Iterable[AnyArtifact],
    store: Store,
    *,
    lock: Path,
    source: FileSource | None = None,
    progress: TransferProgress,
) -> list[Mirrored]:
    """Put the files of ``artifacts`` into the store: verify existing files, then search ``source``, then try URLs.

    ``lock`` is the stack's lock file. Raises one ``ArtifactError`` with all failures at the end, or at once if the
    store's directory is unusable.
    """
    _require_writable(store.root / _INCOMING)
    run = _Run(store, lock, source, progress)
    done: list[Mirrored] = []
    failures: list[str] = []
    unreached: dict[str, Unreached] = {}
    for artifact in artifacts:
        try:
            done.append(run.obtain(artifact))
        except Unreached as error:
            progress.end(artifact.file, "failed")
            unreached[artifact.name] = error
        except ArtifactError as error:
            progress.end(artifact.file, "failed")
            failures.append(f"{artifact.name}: {error}")
        except OSError as error:
            progress.end(artifact.file, "failed")
            failures.append(f"{artifact.name}: {error.filename or artifact.file}: {refused(error, ANOTHER)}")
    failures += _of_unreached(unreached)
    if failures:
        raise ArtifactError("\n".join(failures))
    return done


def _of_unreached(errors: Mapping[str, Unreached]) -> Iterator[str]:
    alike: dict[tuple[str, str], dict[str, Unreached]] = {}
    for name, error in errors.items():
        alike.setdefault((error.why, error.cure), {})[name] = error
    for (why, cure), files in alike.items():
        *servers, last = dict.fromkeys(error.who for error in files.values())
        who = f"{', '.join(servers)} and {last}" if servers else last
        yield (
            f"{count(len(files), 'file')} could not be downloaded because {who} {why}: {cure} "
            f"{ELSEWHERE} ({', '.join(files)})"
        )


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(f"{folder.parent}: {refused(error, ANOTHER)}") from error


class _Run:
    def __init__(self, store: Store, lock: Path, source: FileSource | None, progress: TransferProgress):
        self._store = store
        self._lock = lock
        self._source = source
        self._progress = progress
        self._session: requests.Session | None = None
        self._silent: dict[str, Unreached] = {}  #: server → error of the first failed connection to this server

    def obtain(self, artifact: AnyArtifact) -> Mirrored:
        pinned = self._pinned(artifact, read_pins(self._lock))
        new = artifact.sha256 is None and pinned is None
        if new and self._source:
            pinned = self._pinned(artifact, self._source.pins(self._lock.name))
        wanted = artifact.sha256 or pinned
        folder = self._store.root / _INCOMING / (wanted or hashlib.sha256(repr(artifact.urls).encode()).hexdigest())
        with locked(folder):
            try:
                sha256, came = self._obtain(artifact, wanted, folder / f"{artifact.file}.part")
            finally:
                # `rmdir` fails if the folder contains a partial file; a later download resumes this file
                with suppress(OSError):
                    folder.rmdir()
        if new:
            size = self._store.path(sha256, artifact.file).stat().st_size
            write_pin(self._lock, artifact.name, Pin(artifact.file, sha256, size))
        return self._done(artifact, sha256, came, pinned=new)

    def _pinned(self, artifact: AnyArtifact, pins: Mapping[str, Pin]) -> str | None:
        pin = pins.get(artifact.name)
        return pin.sha256 if pin is not None and pin.file == artifact.file else None

    def _obtain(self, artifact: AnyArtifact, wanted: str | None, part: Path) -> tuple[str, Came]:
        if wanted is not None and self._is_there(artifact, wanted):
            discard(part)
            return wanted, "was there"
        own = self._source.find(artifact, wanted) if self._source else None
        if own is not None:
            self._take(artifact, own, part)
            came: Came = "taken"
            sha256 = self._check(artifact, wanted, part, str(own))
        else:
            came = "fetched"
            sha256 = self._fetch(artifact, wanted, part)
        settle(part, self._store.path(sha256, artifact.file))
        discard(part)
        return sha256, came

    def _is_there(self, artifact: AnyArtifact, wanted: str) -> bool:
        """Return whether the store has the file with the checksum ``wanted``. A damaged file is removed."""
        path = self._store.path(wanted, artifact.file)
        if not path.exists():
            return False
        size = path.stat().st_size
        self._progress.show(artifact.file, size, size)
        if sha256_of(path) == wanted:
            return True
        path.unlink()
        return False

    def _take(self, artifact: AnyArtifact, own: Path, part: Path) -> None:
        discard(part)
        size = own.stat().st_size
        self._progress.show(artifact.file, 0, size)
        try:
            part.hardlink_to(own.resolve())
        except OSError:
            shutil.copyfile(own, part)
        self._progress.show(artifact.file, size, size)

    def _bring(self, artifact: AnyArtifact, means: BroughtFile, wanted: str | None, part: Path) -> str:
        with self._asked(_INDEX), TemporaryDirectory(dir=part.parent) as folder:
            self._progress.show(artifact.file, 0, artifact.size)
            brought = means.bring(Path(folder))
            discard(part)
            brought.replace(part)
        return self._check(artifact, wanted, part, artifact.file)

    def _fetch(self, artifact: AnyArtifact, wanted: str | None, part: Path) -> str:
        if isinstance(artifact, BroughtFile):
            return self._bring(artifact, artifact, wanted, part)
        if not artifact.urls:
            raise ArtifactError(
                f"{artifact.file} has no public URL; download it yourself and run {Command('mirror', from_='DIR')}"
            )
        self._session = self._session or make_session()
        failures: list[ArtifactError] = []
        for url in artifact.urls:
            try:
                with self._asked(urlsplit(url).netloc):
                    fetch(
                        self._session,
                        url,
                        part,
                        size=artifact.size,
                        checked=wanted is not None,
                        tell=lambda done, total: self._progress.show(artifact.file, done, total),
                    )
                return self._check(artifact, wanted, part, url)
            except ArtifactError as error:
                failures.append(error)
        if all(isinstance(error, Unreached) for error in failures):
            raise failures[0]
        raise ArtifactError("; ".join(map(str, failures)))

    @contextmanager
    def _asked(self, server: str) -> Iterator[None]:
        """Raise the earlier error of ``server`` if the server was unreachable before, because another attempt would
        take as long.
        """
        if server in self._silent:
            raise self._silent[server]
        try:
            yield
        except Unreached as error:
            self._silent[server] = error
            raise

    def _check(self, artifact: AnyArtifact, wanted: str | None, part: Path, origin: str) -> str:
        """Return the checksum of ``part``. If it is wrong, remove the file and raise ``ArtifactError``."""
        size = part.stat().st_size
        if artifact.size is not None and size != artifact.size:
            discard(part)
            raise ArtifactError(f"{origin}: the file has {size:,} bytes, but the stack specifies {artifact.size:,}")
        sha256 = sha256_of(part)
        if wanted is not None and sha256 != wanted:
            discard(part)
            source = "the stack" if read_pins(self._lock).get(artifact.name) is None else f"{self._lock}"
            raise ArtifactError(
                f"{origin}: the file has the sha256 {sha256}, but {source} specifies {wanted}; the file was removed"
            )
        return sha256

    def _done(self, artifact: AnyArtifact, sha256: str, came: Came, *, pinned: bool) -> Mirrored:
        path = self._store.path(sha256, artifact.file)
        if came != "was there":
            self._progress.end(artifact.file, came + (", pinned" if pinned else ""))
        return Mirrored(
            artifact.name, artifact.file, path, sha256, path.stat().st_size, came, pinned, bool(artifact.stand_in)
        )
