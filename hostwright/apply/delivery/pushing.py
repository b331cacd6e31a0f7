"""Sends files of the stack to a host over the SSH connection.

A file gets its final name only after the host has verified the checksum. An interrupted transfer is resumed. Each byte
is written at its own offset. So a receiving program that still runs after a lost connection can only write the same
bytes again.
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

_IDLE_S = 60.0  #: time limit in seconds for the next output of the receiving program, which prints ``alive`` every 5 s
SLOWEST_BYTES_PER_S = 256 * 1024  #: minimum rate of a transfer in bytes per second (2 Mbit/s)
_NOTIFY_BYTES = 4 * 1024 * 1024  #: number of transferred bytes between two progress reports
_READ_BYTES = 1024 * 1024

Progress = Callable[[int], None]

#: shell code that chooses the program for checksums. The script missing.sh makes the same choice.
_HASH = "hash=sha256sum; if command -v openssl >/dev/null; then hash='openssl dgst -sha256 -r'; fi"

#: shell program that receives one file. $1 is the directory, $2 the sha256, $3 the file name, $4 the size and $5 the
#: offset at which the input begins. The process that prints ``alive`` must not keep the SSH channel open.
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
    """Send the host the missing part of the file ``found``. If the file arrives damaged, send it again from the start.

    ``progress`` receives the number of bytes on the host. Raises ``HostError`` for a write error or a file that arrived
    damaged twice. Raises ``ArtifactError`` for a file that is damaged on this machine, and ``BecomeError`` if the login
    user cannot become root. Raises ``Unreachable`` for a lost connection; call ``look`` before a retry.
    """
    item, arrived = found.item, ""
    for start in (found.start, 0):
        verdict, *rest = _stream(shell, item, start, progress, cache)
        if verdict == "done":
            progress(item.size)
            return
        if verdict == "short":
            raise ArtifactError(f"{item.path} became shorter during its transfer; run {Command('mirror')} again")
        arrived = rest[0] if rest else "unknown"
    raise damaged(shell.host, item, f"arrived damaged twice: its sha256 is {arrived}, expected {item.sha256}")


def damaged(host: str, item: StoredFile, how: str) -> ArtifactError | HostError:
    """Return the error for a file with a wrong checksum on ``host``. The error is an ``ArtifactError`` if this
    machine's file is damaged, too.
    """
    if sha256_of(item.path) != item.sha256:
        return ArtifactError(f"{item.path} is damaged on this machine; run {Command('mirror')} again")
    return HostError(host, f"{item.file} {how}; check the host's memory, disk and network")


def _stream(shell: RootShell, item: StoredFile, start: int, progress: Progress, cache: str) -> list[str]:
    """Send ``item`` from byte ``start`` on. Return the words of the receiver's last line: ``done``, ``short N`` or
    ``wrong SUM``.
    """
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
    def __init__(self, item: StoredFile, start: int, progress: Progress):
        self._file = item.path.open("rb", buffering=_READ_BYTES)
        self._file.seek(start)
        self._done = start
        self._shown_bytes = -_NOTIFY_BYTES
        self._progress = progress

    def read(self, size: int, /) -> bytes:
        if self._done - self._shown_bytes >= _NOTIFY_BYTES:
            self._shown_bytes = self._done
            self._progress(self._done)
        data = self._file.read(size)
        self._done += len(data)
        return data

    def close(self) -> None:
        self._file.close()
