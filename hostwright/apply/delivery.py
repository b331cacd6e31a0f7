"""Files of the stack onto a host, over the SSH connection or from the vendor: whole and right, or not there at all.

A file lies under its sha256, and gets its final name only once the host itself has found that sum. What was begun goes
on where it ended. Each byte is written at its own place, so that the leftover of a broken connection that still writes
there writes nothing but the same bytes once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.common.errors import ArtifactError, HostError, ProtocolError
from hostwright.common.quoting import sh, words
from hostwright.stack.store.artifacts import AnyArtifact, sha256_of
from hostwright.stack.store.hostcache import CACHE

if TYPE_CHECKING:
    from hostwright.transport.root.rootshell import RootShell

_LOOK_TIMEOUT_S = 60.0
_IDLE_S = 60.0  #: a host that reads or syncs a big file still gives a sign of life every 5 s
_SLOWEST_DISK_BYTES_PER_S = 20e6  #: what a worn-out disk still reads
_SLOWEST_BYTES_PER_S = 256 * 1024  #: nobody waits for gigabytes at less than 2 Mbit/s
_ROOM_BYTES = 64 * 1024 * 1024  #: free space that is left to the host
_NOTIFY_BYTES = 4 * 1024 * 1024  #: how often a transfer tells how far it is
_READ_BYTES = 1024 * 1024

Notify = Callable[[AnyArtifact, int, int], None]  #: called with (artifact, bytes there, bytes in total)

#: openssl has the processor's instructions for it, Debian's sha256sum has not: 2 to 4 times as fast
_HASH = "hash=sha256sum; if command -v openssl >/dev/null; then hash='openssl dgst -sha256 -r'; fi"
_LOOK_HEAD = (
    "set -e; umask 022; mkdir -p %s; cd %s\n"
    + _HASH
    + '\nright() { sum=$($hash <"$1") && [ "${sum%%%% *}" = "$2" ]; }\n'
)
#: A file is used by what it holds, not by its name: disks and people damage files long after they came.
_LOOK_ONE = (
    "if [ -f %s ] && right %s %s; then echo there; else rm -f -- %s; "
    "stat -c 'part %%s' %s 2>/dev/null || echo part 0; fi\n"
)
_LOOK_FREE = "df -Pk . | awk 'NR == 2 { print \"free \" $4 }'\n"

#: Receives one file. $1: folder, $2: sha256, $3: file, $4: its length, $5: where its input belongs. It is one line,
#: because the login shell that hands it on may be a csh. The heartbeat must not hold on to the channel.
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

#: The host fetches for itself. Exit statuses after which a part cannot be continued: done but wrong, 416, no ranges;
#: and those of curl's after which it can: cut off, too slow, no answer, sending and receiving failed.
_FETCH_HEAD = "set -eu; umask 022; mkdir -p %s; cd %s; file=%s part=%s sum=%s\n"
_FETCH_BODY = """\
if [ -f "$file" ] && found=$(sha256sum <"$file") && [ "${found%% *}" = "$sum" ]; then exit 0; fi
rm -f -- "$file"
get() {
    if command -v curl >/dev/null; then
        curl --fail --location --silent --show-error --retry 3 --connect-timeout 15 --speed-limit 1024 \\
            --speed-time 60 --continue-at - --output "$part" --url "$1"
    elif command -v wget >/dev/null; then
        wget --no-verbose --continue --tries=3 --timeout=60 --output-document="$part" -- "$1"
    else
        echo 'neither curl nor wget is installed' >&2
        exit 1
    fi
}
right() { [ -f "$part" ] && found=$(sha256sum <"$part") && [ "${found%% *}" = "$sum" ]; }
for url; do
    for try in 1 2 3; do
        status=0
        get "$url" || status=$?
        if right; then break 2; fi
        case $status in
            0 | 8 | 22 | 33 | 36) rm -f -- "$part" ;;
            18 | 28 | 52 | 55 | 56) ;;
            *) break ;;
        esac
    done
done
if ! right; then
    echo "none of the URLs gave $file with the sha256 $sum" >&2
    exit 1
fi
chmod 0644 -- "$part"
sync -- "$part"
mv -f -- "$part" "$file"
sync .
"""


def fetch_script(artifact: AnyArtifact, cache: str = CACHE) -> str:
    """A root program by which the host fetches the file from its vendor (``artifacts: direct``).

    It can be run again after any interruption. Raises ``ArtifactError`` for a file that cannot be had in this way.
    """
    urls = [url for url in artifact.urls if url.startswith(("http://", "https://"))]
    if artifact.sha256 is None or not urls:
        missing = "checksum" if urls else "http(s) URL"
        raise ArtifactError(
            f"{artifact.name}: {artifact.file} has no {missing}, so that no host can fetch it for itself"
        )
    folder, file = f"{cache}/{artifact.sha256}", f"./{artifact.file}"
    head = sh(_FETCH_HEAD, folder, folder, file, f"{file}.part", artifact.sha256)
    return f"{head}set -- {words(urls)}\n{_FETCH_BODY}"


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
    """Bring files to the host, those that are not there; one exec to look, and one for each file that is sent.

    Raises ``HostError`` (no room, cannot write, arrived damaged twice), ``BecomeError``,
    ``Unreachable`` (the next call goes on where this one ended) and ``ArtifactError`` for a damaged file here.
    """
    items = list(dict.fromkeys(_item(artifact, path) for artifact, path in artifacts))
    if not items:
        return
    delivery = _Delivery(shell, progress, cache)
    for item in delivery.look(items):
        delivery.send(item)


def _item(artifact: AnyArtifact, path: Path) -> _Item:
    if artifact.sha256 is None:
        raise ArtifactError(f"{artifact.name}: no checksum of {artifact.file} is known yet: run invoke mirror")
    try:
        return _Item(artifact, path, artifact.sha256, path.stat().st_size)
    except OSError as error:
        raise ArtifactError(f"{artifact.name}: {path}: {error.strerror}: run invoke mirror") from error


def look_script(items: Sequence[tuple[str, str]], cache: str = CACHE) -> str:
    """A root program that says of each (sha256, file) whether it is there or how long its part is, and what is free.

    What is there and is not what its sum says goes away.
    """
    looks = [(f"{sha256}/{file}", sha256) for sha256, file in items]
    lines = [sh(_LOOK_ONE, name, name, sha256, name, f"{name}.part") for name, sha256 in looks]
    return sh(_LOOK_HEAD, cache, cache) + "".join(lines) + _LOOK_FREE


class _Delivery:
    """What all files that go to one host have in common."""

    def __init__(self, shell: RootShell, progress: Notify, cache: str):
        self._shell = shell
        self._progress = progress
        self._cache = cache

    def look(self, items: list[_Item]) -> list[_Item]:
        """The files that are missing, with what is there of each; refuses when they do not fit."""
        script = look_script([(item.sha256, item.artifact.file) for item in items], self._cache)
        timeout_s = _LOOK_TIMEOUT_S + sum(item.size for item in items) / _SLOWEST_DISK_BYTES_PER_S
        output = self._shell.run(script, timeout_s=timeout_s, failure=f"{self._cache} cannot be used")
        lines = [line.split() for line in output.stdout.decode("ascii", "replace").splitlines()]
        try:
            *states, (_, free_kib) = lines
            missing = [
                replace(item, start=_start(int(state[1]), item.size))
                for item, state in zip(items, states, strict=True)
                if state != ["there"]
            ]
            free = int(free_kib) * 1024
        except (ValueError, IndexError) as error:
            raise ProtocolError(self._shell.host, f"its answer about {self._cache} cannot be parsed") from error
        wanted = sum(item.size - item.start for item in missing)
        if missing and wanted + _ROOM_BYTES > free:
            raise self._failure(
                f"{self._cache} needs {_size(wanted)} for {len(missing)} files, and {_size(free)} are free: make room"
            )
        return missing

    def send(self, item: _Item) -> None:
        """Send one file; what arrives damaged is sent once more from its beginning."""
        found = ""
        for start in (item.start, 0):
            said, *rest = self._stream(item, start)
            if said == "done":
                self._progress(item.artifact, item.size, item.size)
                return
            if said == "short":
                raise ArtifactError(f"{item.path} was truncated while it was sent: run invoke mirror again")
            found = rest[0] if rest else "unknown"
        if sha256_of(item.path) != item.sha256:
            raise ArtifactError(f"{item.path} is damaged on this machine: run invoke mirror again")
        raise self._failure(
            f"{item.artifact.file} arrived damaged twice (sha256 {found} instead of {item.sha256}): suspect the host's "
            "memory, its disk or the network"
        )

    def _stream(self, item: _Item, start: int) -> list[str]:
        """Send a file from ``start`` on; what the receiver said at the end."""
        name = item.artifact.file
        about = (self._cache, item.sha256, name, item.size, start)
        timeout_s = _LOOK_TIMEOUT_S + 2 * item.size / _SLOWEST_BYTES_PER_S
        with closing(_Source(item, start, self._progress)) as source:
            output = self._shell.stream(_RECEIVE, *about, stdin=source, timeout_s=timeout_s, idle_s=_IDLE_S)
        lines = output.stdout.decode("ascii", "replace").split("\n")
        said = next((line.split() for line in reversed(lines) if line and line != "alive"), [])
        if output.status != 0 or not said or said[0] not in ("done", "short", "wrong"):
            raise self._shell.failed(f"{name} cannot be written to {self._cache}", output)
        return said

    def _failure(self, sentence: str) -> HostError:
        return HostError(self._shell.host, sentence)


def _start(part: int, size: int) -> int:
    """Where to go on; a part that is longer than the file is of no use."""
    return part if 0 <= part <= size else 0


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


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 10**9 else f"{count / 1e6:.0f} MB"
