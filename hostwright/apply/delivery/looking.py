"""Checks which of the files that a host needs are already on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.common.command import Command
from hostwright.common.errors import ArtifactError, ProtocolError
from hostwright.common.quoting import sh_file
from hostwright.common.untrusted import whole
from hostwright.stack.store.artifacts import AnyArtifact
from hostwright.stack.store.hostcache import CACHE
from hostwright.transport.exchange import plain_address

if TYPE_CHECKING:
    from hostwright.transport.root.rootshell import RootShell

PROBE_TIMEOUT_S = 60.0
SLOWEST_DISK_BYTES_PER_S = 20e6  #: lowest expected read rate of a host's disk in bytes per second (our estimate)
LINE_BYTES = 150  #: maximum length in bytes of an output line of the script missing.sh
#: command that prints the addresses of the SSH connection. sshd sets ``SSH_CONNECTION`` only for the login user.
_SEEN = "printf 'via %s\\n' \"${SSH_CONNECTION-}\""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file to deliver: an artifact, and the path of the artifact's file on this machine."""

    artifact: AnyArtifact
    path: Path
    sha256: str
    size: int

    @classmethod
    def of(cls, artifact: AnyArtifact, path: Path) -> StoredFile:
        """Return the stored file of ``artifact`` with the content in ``path``.

        Raises ``ArtifactError`` if the artifact has no checksum or the file is unreadable.
        """
        if artifact.sha256 is None:
            raise ArtifactError(f"{artifact.name}: {artifact.file} has no pinned checksum yet; run {Command('mirror')}")
        try:
            return cls(artifact, path, artifact.sha256, path.stat().st_size)
        except OSError as error:
            raise ArtifactError(f"{artifact.name}: {path}: {error.strerror}; run {Command('mirror')}") from error

    @property
    def file(self) -> str:
        """The name of the file, without a directory."""
        return self.artifact.file

    @property
    def key(self) -> tuple[str, str]:
        """The checksum and name of the file. Artifacts with the same key share one file on a host."""
        return self.sha256, self.file


@dataclass(frozen=True, slots=True)
class Found:
    """The part of the file ``item`` that a host has: the whole file (``there``), or the first ``start`` bytes."""

    item: StoredFile
    there: bool
    start: int = 0


def missing_script(files: Sequence[tuple[str, str]], cache: str = CACHE) -> str:
    """Return a program for root that prints the free bytes of ``cache``, and the state of each file in ``cache``.

    ``files`` are pairs of sha256 and file name. The state is "complete", or the length of the partial file. The program
    deletes files with a wrong checksum.
    """
    return sh_file(__file__, "missing.sh", cache=cache, files=tuple(f"{sha256}/{name}" for sha256, name in files))


def look(
    shell: RootShell,
    items: Sequence[StoredFile],
    *,
    begun: Callable[[str, int], None],
    found: Callable[[Found], None],
    cache: str = CACHE,
) -> None:
    """Check with one command which of the files ``items`` are on the host.

    ``begun`` receives this machine's address from the host's point of view (empty if unknown), and the free bytes in
    ``cache``. ``found`` is called for each missing file at once, and for each present file after its checksum was
    verified. Raises ``HostError`` if the command fails, and ``ProtocolError`` if its output is invalid.
    """
    reader = _Reader(shell.host, items, begun, found, cache)
    output = shell.attempt(
        missing_script([(item.sha256, item.file) for item in items], cache),
        as_user=_SEEN,
        timeout_s=PROBE_TIMEOUT_S + sum(item.size for item in items) / SLOWEST_DISK_BYTES_PER_S,
        cap_bytes=LINE_BYTES * (len(items) + 2),
        on_stdout=reader.feed,
    )
    if output.status != 0:
        raise shell.failed(f"the cache directory {cache} cannot be used", output)
    reader.finish()


class _Reader:
    def __init__(
        self,
        host: str,
        items: Sequence[StoredFile],
        begun: Callable[[str, int], None],
        found: Callable[[Found], None],
        cache: str,
    ):
        self._host, self._items, self._cache = host, items, cache
        self._tell_begun, self._found = begun, found
        self._seen = ""
        self._rest = b""
        self._left = set(range(len(items)))
        self._begun = False

    def feed(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[: LINE_BYTES + 1]
        for line in lines:
            self._take(line.decode("ascii", "replace").split())
        if len(self._rest) > LINE_BYTES:
            raise self._failure()

    def finish(self) -> None:
        if self._left or self._rest or not self._begun:
            raise self._failure()

    def _take(self, words: list[str]) -> None:
        match words:
            case ["via", *ends] if not self._begun:
                self._seen = plain_address(ends[0]) if len(ends) == 4 else ""
            case ["free", kib] if not self._begun and (number := whole(kib)) is not None:
                self._begun = True
                self._tell_begun(self._seen, number * 1024)
            case [index, "there"] if self._begun:
                self._found(Found(self._next(index), there=True))
            case [index, "part", size] if self._begun and (part := whole(size)) is not None:
                item = self._next(index)
                # A partial file longer than the whole file cannot be continued.
                self._found(Found(item, there=False, start=part if part <= item.size else 0))
            case _:
                raise self._failure()

    def _next(self, text: str) -> StoredFile:
        """Return the file with the number ``text``. Raises ``ProtocolError`` if the host has already reported this
        file.
        """
        index = whole(text)
        if index not in self._left:
            raise self._failure()
        self._left.remove(index)
        return self._items[index]

    def _failure(self) -> ProtocolError:
        return ProtocolError(self._host, f"the list of files in {self._cache} cannot be parsed")
