"""Sends files of the stack to a host over the SSH connection.

A file is stored under its sha256, and gets its final name only after the host itself has computed that sum. A transfer
that broke off is continued where it ended. Each byte is written at its own offset, so that a program of a broken
connection that still writes there writes the same bytes once more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from hostwright.apply.delivery.looking import PROBE_TIMEOUT_S, Found, StoredFile
from hostwright.common.command import Command
from hostwright.common.errors import ArtifactError, HostError
from hostwright.stack.store.artifacts import sha256_of
from hostwright.stack.store.hostcache import CACHE

if TYPE_CHECKING:
    from hostwright.transport.root.rootshell import RootShell

_IDLE_S = 60.0  #: a host that reads or syncs a big file prints ``alive`` every 5 s (``_RECEIVE``)
SLOWEST_BYTES_PER_S = 256 * 1024  #: 2 Mbit/s: at less, gigabytes take too long
_NOTIFY_BYTES = 4 * 1024 * 1024  #: how often a transfer reports its progress
_READ_BYTES = 1024 * 1024

Progress = Callable[[int], None]  #: called with the bytes that are there

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


def push(shell: RootShell, found: Found, *, progress: Progress, cache: str = CACHE) -> None:
    """Send one file that the host does not have; if it arrives damaged, send it once more from its beginning.

    ``progress`` is called with the bytes that are there. Raises ``HostError`` (cannot write, arrived damaged twice),
    ``BecomeError``, ``Unreachable`` (look again, and go on where this one ended), ``ArtifactError`` for a file that is
    truncated or damaged on this machine, and what ``progress`` raises.
    """
    item, arrived = found.item, ""
    for start in (found.start, 0):
        verdict, *rest = _stream(shell, item, start, progress, cache)
        if verdict == "done":
            progress(item.size)
            return
        if verdict == "short":
            raise ArtifactError(f"{item.path} was truncated while it was sent: run {Command('mirror')} again")
        arrived = rest[0] if rest else "unknown"
    raise damaged(shell.host, item, f"arrived damaged twice (sha256 {arrived} instead of {item.sha256})")


def damaged(host: str, item: StoredFile, how: str) -> ArtifactError | HostError:
    """The error for a file that arrives damaged: this machine's fault, or the host's."""
    if sha256_of(item.path) != item.sha256:
        return ArtifactError(f"{item.path} is damaged on this machine: run {Command('mirror')} again")
    return HostError(host, f"{item.file} {how}: suspect the host's memory, its disk or the network")


def _stream(shell: RootShell, item: StoredFile, start: int, progress: Progress, cache: str) -> list[str]:
    """Send a file from ``start`` on; the last line of the receiver: ``done``, ``short N`` or ``wrong SUM``."""
    about = (cache, item.sha256, item.file, item.size, start)
    timeout_s = PROBE_TIMEOUT_S + 2 * item.size / SLOWEST_BYTES_PER_S
    with closing(_Source(item, start, progress)) as source:
        output = shell.stream(_RECEIVE, *about, stdin=source, timeout_s=timeout_s, idle_s=_IDLE_S)
    lines = output.stdout.decode("ascii", "replace").split("\n")
    last = next((line.split() for line in reversed(lines) if line and line != "alive"), [])
    if output.status != 0 or not last or last[0] not in ("done", "short", "wrong"):
        raise shell.failed(f"{item.file} cannot be written to {cache}", output)
    return last


class _Source:
    """The input of the receiver: the file from an offset on."""

    def __init__(self, item: StoredFile, start: int, progress: Progress):
        self._file = item.path.open("rb", buffering=_READ_BYTES)
        self._file.seek(start)
        self._done = start
        self._shown_bytes = -_NOTIFY_BYTES
        self._progress = progress

    def read(self, size: int, /) -> bytes:
        """See ``transport.Readable``."""
        if self._done - self._shown_bytes >= _NOTIFY_BYTES:
            self._shown_bytes = self._done
            self._progress(self._done)
        data = self._file.read(size)
        self._done += len(data)
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()
