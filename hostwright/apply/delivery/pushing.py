"""Files of the stack sent to a host over the SSH connection: whole and right, or not there at all.

A file lies under its sha256, and gets its final name only once the host itself has found that sum. A transfer that
broke off is continued where it ended. Each byte is written at its own place, so that what is left of a broken
connection, and still writes there, writes nothing but the same bytes once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.common.errors import ArtifactError, HostError, ProtocolError
from hostwright.common.quoting import sh_file
from hostwright.common.text import count, shown_bytes
from hostwright.common.untrusted import whole
from hostwright.stack.store.artifacts import AnyArtifact, sha256_of
from hostwright.stack.store.hostcache import CACHE

if TYPE_CHECKING:
    from hostwright.transport.root.rootshell import RootShell

_PROBE_TIMEOUT_S = 60.0
_IDLE_S = 60.0  #: a host that reads or syncs a big file prints ``alive`` every 5 s (``_RECEIVE``)
_SLOWEST_DISK_BYTES_PER_S = 20e6  #: our estimate of a worn-out disk
_SLOWEST_BYTES_PER_S = 256 * 1024  #: 2 Mbit/s: nobody waits for gigabytes at less
_ROOM_BYTES = 64 * 1024 * 1024  #: free space that is left to the host
_NOTIFY_BYTES = 4 * 1024 * 1024  #: how often a transfer tells how far it is
_READ_BYTES = 1024 * 1024

Notify = Callable[[AnyArtifact, int, int], None]  #: called with (artifact, bytes there, bytes in total)

_HASH = "hash=sha256sum; if command -v openssl >/dev/null; then hash='openssl dgst -sha256 -r'; fi"  #: as missing.sh

#: Receives one file. $1: folder, $2: sha256, $3: file, $4: its length, $5: where its input belongs. The heartbeat
#: must not hold on to the channel.
_RECEIVE = "; ".join(
    [
        'set -eu; umask 022; mkdir -p "$1/$2"; cd "$1/$2"; part="./$3.part"',
        'if [ "$5" = 0 ]; then rm -f -- "$part"; fi',
        "(while sleep 5 >/dev/null 2>&1; do echo alive; done) & beat=$!",
        "trap 'kill $beat 2>/dev/null || :' EXIT",
        'dd of="$part" bs=128k seek="$5" oflag=seek_bytes iflag=fullblock conv=notrunc,fsync status=none',
        'there=$(stat -c %s -- "$part")',
        'if [ "$there" != "$4" ]; then echo "short $there"; exit 0; fi',
        _HASH,
        'sum=$($hash <"$part"); sum=${sum%% *}',
        'if [ "$sum" != "$2" ]; then rm -f -- "$part"; echo "wrong $sum"; exit 0; fi',
        'chmod 0644 -- "$part"; mv -f -- "$part" "./$3"; sync .; echo done',
    ]
)


@dataclass(frozen=True, slots=True)
class _Item:
    """One file to be delivered; ``start`` is how much of it the host has."""

    artifact: AnyArtifact
    path: Path
    sha256: str
    size: int
    start: int = 0


def deliver(
    shell: RootShell,
    artifacts: Sequence[tuple[AnyArtifact, Path]],
    *,
    progress: Notify,
    cache: str = CACHE,
) -> None:
    """Send those files to the host that it does not have: one exec to find out, and one for each file that is sent.

    ``artifacts`` are artifacts with their files on this machine; ``progress`` is called with an artifact, the bytes of
    it that are there, and its size. Raises ``HostError`` (no space, cannot write, arrived damaged twice),
    ``BecomeError``, ``Unreachable`` (the next call continues where this one ended) and ``ArtifactError`` for a file
    that is missing, truncated or damaged on this machine.
    """
    items = list(dict.fromkeys(_item(artifact, path) for artifact, path in artifacts))
    if not items:
        return
    delivery = _Delivery(shell, progress, cache)
    for item in delivery.missing(items):
        delivery.send(item)


def _item(artifact: AnyArtifact, path: Path) -> _Item:
    if artifact.sha256 is None:
        raise ArtifactError(f"{artifact.name}: no checksum of {artifact.file} is known yet: run invoke mirror")
    try:
        return _Item(artifact, path, artifact.sha256, path.stat().st_size)
    except OSError as error:
        raise ArtifactError(f"{artifact.name}: {path}: {error.strerror}: run invoke mirror") from error


def missing_script(files: Sequence[tuple[str, str]], cache: str = CACHE) -> str:
    """A root program that says of each (sha256, file name) whether it is there or how long its part is, and what is
    free. It removes a file that does not have its sum."""
    return sh_file(__file__, "missing.sh", cache=cache, files=tuple(f"{sha256}/{name}" for sha256, name in files))


class _Delivery:
    """What all files that go to one host have in common."""

    def __init__(self, shell: RootShell, progress: Notify, cache: str):
        self._shell = shell
        self._progress = progress
        self._cache = cache

    def missing(self, items: list[_Item]) -> list[_Item]:
        """The files that are missing, with how much of each has arrived. Raises ``HostError`` when they do not fit."""
        script = missing_script([(item.sha256, item.artifact.file) for item in items], self._cache)
        timeout_s = _PROBE_TIMEOUT_S + sum(item.size for item in items) / _SLOWEST_DISK_BYTES_PER_S
        output = self._shell.run(script, timeout_s=timeout_s, failure=f"{self._cache} cannot be used")
        lines = [line.split() for line in output.stdout.decode("ascii", "replace").splitlines()]
        try:
            *states, (_, free_kib) = lines
            missing = [
                replace(item, start=_start(_number(state[1]), item.size))
                for item, state in zip(items, states, strict=True)
                if state != ["there"]
            ]
            free = _number(free_kib) * 1024
        except (ValueError, IndexError) as error:
            raise ProtocolError(self._shell.host, f"its answer about {self._cache} cannot be parsed") from error
        wanted = sum(item.size - item.start for item in missing)
        if missing and wanted + _ROOM_BYTES > free:
            files = count(len(missing), "file")
            raise self._failure(
                f"{self._cache} needs {shown_bytes(wanted)} for {files}, and {shown_bytes(free)} are free: make room"
            )
        return missing

    def send(self, item: _Item) -> None:
        """Send one file; what arrives damaged is sent once more from its beginning."""
        arrived = ""
        for start in (item.start, 0):
            verdict, *rest = self._stream(item, start)
            if verdict == "done":
                self._progress(item.artifact, item.size, item.size)
                return
            if verdict == "short":
                raise ArtifactError(f"{item.path} was truncated while it was sent: run invoke mirror again")
            arrived = rest[0] if rest else "unknown"
        if sha256_of(item.path) != item.sha256:
            raise ArtifactError(f"{item.path} is damaged on this machine: run invoke mirror again")
        raise self._failure(
            f"{item.artifact.file} arrived damaged twice (sha256 {arrived} instead of {item.sha256}): suspect the "
            "host's memory, its disk or the network"
        )

    def _stream(self, item: _Item, start: int) -> list[str]:
        """Send a file from ``start`` on; the receiver's last words: ``done``, ``short N`` or ``wrong SUM``."""
        name = item.artifact.file
        about = (self._cache, item.sha256, name, item.size, start)
        timeout_s = _PROBE_TIMEOUT_S + 2 * item.size / _SLOWEST_BYTES_PER_S
        with closing(_Source(item, start, self._progress)) as source:
            output = self._shell.stream(_RECEIVE, *about, stdin=source, timeout_s=timeout_s, idle_s=_IDLE_S)
        lines = output.stdout.decode("ascii", "replace").split("\n")
        last = next((line.split() for line in reversed(lines) if line and line != "alive"), [])
        if output.status != 0 or not last or last[0] not in ("done", "short", "wrong"):
            raise self._shell.failed(f"{name} cannot be written to {self._cache}", output)
        return last

    def _failure(self, sentence: str) -> HostError:
        return HostError(self._shell.host, sentence)


def _number(text: str) -> int:
    """A number in the host's answer. Raises ``ValueError`` for anything else."""
    number = whole(text)
    if number is None:
        raise ValueError("it is no number")
    return number


def _start(part: int, size: int) -> int:
    """Where to go on; a part that is longer than the file is of no use."""
    return part if part <= size else 0


class _Source:
    """What the receiver reads: the file from some place on."""

    def __init__(self, item: _Item, start: int, progress: Notify):
        self._file = item.path.open("rb", buffering=_READ_BYTES)
        self._file.seek(start)
        self._item = item
        self._done = start
        self._told = -_NOTIFY_BYTES
        self._progress = progress

    def read(self, size: int, /) -> bytes:
        """See ``transport.Readable``."""
        if self._done - self._told >= _NOTIFY_BYTES:
            self._told = self._done
            self._progress(self._item.artifact, self._done, self._item.size)
        data = self._file.read(size)
        self._done += len(data)
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()
