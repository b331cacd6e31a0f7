"""Lets a host fetch a file of the stack by HTTP: from this machine, or from another host of the run.

The host gets the address, the token and the file's sum over SSH. A machine in between can read a vendor's public file,
and change it, which the sum detects.
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

_IDLE_S = 40.0  #: a host prints a line every 5 s at least, while it fetches and while it reads what it has
_CAP_BYTES = 1 << 20  #: of its output: a line each second for twelve hours
_LINE_BYTES = 300
_OWN_TROUBLE = ("disk", "full", "locked")  #: reasons that are the host's own fault


@dataclass(frozen=True, slots=True)
class Grant:
    """The right to fetch one file: where, and by which token."""

    address: str
    port: int
    token: str = field(repr=False)


class HeldInput:
    """The standard input of a program on a host that must work only as long as this process wants it to.

    It is one line, and then nothing until ``end``. The program ends with its input, also where the connection is lost
    or this process is killed. The line may be a secret: it is in no argument and no file.
    """

    def __init__(self, line: str):
        self._line = f"{line}\n".encode()
        self._ended = threading.Event()

    def read(self, size: int, /) -> bytes:
        """See ``transport.Readable``."""
        piece, self._line = self._line[:size], self._line[size:]
        if not piece:
            self._ended.wait()
        return piece

    def end(self) -> None:
        """End the input, and so the program."""
        self._ended.set()


@dataclass(frozen=True, slots=True)
class Pulled:
    """How a transfer ended: ``done``, ``wrong`` (its sum), ``failed`` (a ``word``, and ``why``) or ``called off``.

    ``done_bytes`` is how much the host reports to have of the file afterwards.
    """

    verdict: str
    word: str = ""
    why: str = ""
    done_bytes: int = 0


@cache
def program() -> str:
    """The program by which a host fetches, without the comment at its head."""
    return perl(Path(__file__).with_name("pull.pl"))


def perl(path: Path) -> str:
    """A Perl program without the comment at its head."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    head = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return "".join(lines[head:])


def pull_script(item: StoredFile, grant: Grant, cache: str = CACHE) -> str:
    """A root program that fetches a file; the first line of its standard input is the token."""
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
    """Let the host fetch a file from byte ``start`` on. ``lifeline`` begins with the token; its end stops the
    transfer.

    Raises ``HostError`` if the host itself is the cause (it cannot write, its disk is full), ``ProtocolError``,
    ``Unreachable`` (look again), and what ``progress`` raises.
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
    """Reads the output of the program on the host; numbers beyond the file's size are cut to it."""

    def __init__(self, host: str, item: StoredFile, start: int, progress: Callable[[int], None]):
        self._host, self._item, self._progress = host, item, progress
        self._at = start
        self._rest = b""
        self._last: list[str] = []

    def feed(self, data: bytes) -> None:
        """Take a piece of its output."""
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
        """How it ended, by its last line."""
        match self._last:
            case ["done"]:
                return Pulled("done", done_bytes=self._item.size)
            case ["wrong", found]:
                return Pulled("wrong", why=short(found))
            case ["failed", word, *why]:
                return Pulled("failed", short(word), short(" ".join(why)), self._at)
            case ["called", "off"]:
                return Pulled("called off", done_bytes=self._at)
        raise ProtocolError(self._host, f"how it fetched {self._item.file} cannot be parsed")
