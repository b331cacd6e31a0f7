"""Lets a host fetch a file of the stack by HTTP: from this machine, or from another host of the run.

The host receives the server's address, a token and the file's checksum over SSH. The content of the file is public.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.apply.delivery.looking import PROBE_TIMEOUT_S, StoredFile
from hostwright.apply.delivery.pushing import SLOWEST_BYTES_PER_S
from hostwright.common.errors import HostError, ProtocolError
from hostwright.common.quoting import sh_file
from hostwright.common.text import short
from hostwright.common.untrusted import whole
from hostwright.stack.store.hostcache import CACHE

if TYPE_CHECKING:
    from hostwright.transport.root.rootshell import RootShell

_IDLE_S = 40.0  #: time limit in seconds for the next output of the download program, which prints a line every 5 s
#: maximum number of bytes of the download program's output, enough for one line per second for 12 h
_CAP_BYTES = 1 << 20
_LINE_BYTES = 300
#: reasons of a failed download for which the receiving host is responsible, not the source
_OWN_TROUBLE = ("disk", "full", "locked")


@dataclass(frozen=True, slots=True)
class Grant:
    """The address and port of an HTTP server, and a token that permits a fetch of files from the server."""

    address: str
    port: int
    token: str = field(repr=False)


class HeldInput:
    """The standard input of a program on a host: one line, then nothing until ``end`` closes the input.

    The end of the input, also after a lost connection, makes the program exit. The line may be a secret.
    """

    def __init__(self, line: str):
        self._line = f"{line}\n".encode()
        self._ended = threading.Event()

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes of the line; then block until ``end``. Implements ``transport.Readable``."""
        piece, self._line = self._line[:size], self._line[size:]
        if not piece:
            self._ended.wait()
        return piece

    def end(self) -> None:
        """Close the input, which makes the program exit."""
        self._ended.set()


@dataclass(frozen=True, slots=True)
class Pulled:
    """The outcome of the fetch of a file: ``done``, ``wrong`` for a wrong checksum, ``failed``, or ``called off``.

    ``word`` and ``why`` describe a failure. ``done_bytes`` is the size of the file on the host afterwards.
    """

    verdict: str
    word: str = ""
    why: str = ""
    done_bytes: int = 0


@cache
def program() -> str:
    """Return the Perl program that fetches a file on a host, without the leading comment."""
    return perl(Path(__file__).with_name("pull.pl"))


def perl(path: Path) -> str:
    """Return the Perl program in the file ``path``, without the leading comment."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    head = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return "".join(lines[head:])


def pull_script(item: StoredFile, grant: Grant, cache: str = CACHE) -> str:
    """Return a program for root with which a host fetches the file ``item``. The program reads the token from standard
    input.
    """
    return sh_file(
        __file__,
        "pull.sh",
        program=program(),
        folder=f"{cache}/{item.sha256}",
        file=item.file,
        sum=item.sha256,
        size=item.size,
        address=grant.address,
        port=grant.port,
    )


def pull(
    shell: RootShell,
    item: StoredFile,
    grant: Grant,
    lifeline: HeldInput,
    *,
    start: int = 0,
    progress: Callable[[int], None],
    cache: str = CACHE,
) -> Pulled:
    """Let the host fetch the file ``item`` from byte ``start`` on, with the permission ``grant``.

    ``lifeline`` contains the token; the end of ``lifeline`` stops the transfer. Raises ``HostError`` for a failure on
    the host (write error, full disk), and ``ProtocolError`` for invalid output. Raises ``Unreachable`` for a lost
    connection; call ``look`` before a retry.
    """
    reader = _Reader(shell.host, item, start, progress)
    timeout_s = PROBE_TIMEOUT_S + 2 * item.size / SLOWEST_BYTES_PER_S
    try:
        output = shell.stream(
            pull_script(item, grant, cache), stdin=lifeline, timeout_s=timeout_s, idle_s=_IDLE_S,
            cap_bytes=_CAP_BYTES, on_stdout=reader.feed,
        )  # fmt: skip
    finally:
        lifeline.end()
    if output.status != 0:
        raise shell.failed(f"{item.file} cannot be written to {cache}", output)
    pulled = reader.pulled()
    if pulled.word in _OWN_TROUBLE:
        raise HostError(shell.host, f"{item.file} cannot be written to {cache}: {pulled.why}")
    return pulled


class _Reader:
    def __init__(self, host: str, item: StoredFile, start: int, progress: Callable[[int], None]):
        self._host, self._item, self._progress = host, item, progress
        self._at = start
        self._rest = b""
        self._last: list[str] = []

    def feed(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_LINE_BYTES]
        for line in lines:
            self._take(line[:_LINE_BYTES].decode("utf-8", "replace").split(maxsplit=2))

    def _take(self, words: list[str]) -> None:
        match words:
            case ["alive"] | []:
                return
            case ["at", number] if (at := whole(number)) is not None:
                self._at = max(self._at, min(at, self._item.size))
                self._progress(self._at)
            case _:
                self._last = words

    def pulled(self) -> Pulled:
        match self._last:
            case ["done"]:
                return Pulled("done", done_bytes=self._item.size)
            case ["wrong", found]:
                return Pulled("wrong", why=short(found))
            case ["failed", word, *why]:
                return Pulled("failed", short(word), short(" ".join(why)), self._at)
            case ["called", "off"]:
                return Pulled("called off", done_bytes=self._at)
        raise ProtocolError(self._host, f"the output of the program that fetches {self._item.file} cannot be parsed")
