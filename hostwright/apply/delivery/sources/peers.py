"""A host that hands out files to others of its run: a small server there, which ends with the connection to it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.apply.delivery.pulling import Grant, perl
from hostwright.apply.delivery.sources.heldinput import HeldInput
from hostwright.apply.delivery.sources.settings import FileSettings
from hostwright.common.errors import HostError
from hostwright.common.quoting import sh_file
from hostwright.common.text import short
from hostwright.common.untrusted import guarded, whole

if TYPE_CHECKING:
    from hostwright.transport.root.rootshell import RootShell

IDLE_S = 1800  #: our choice: a server that nobody has asked for so long ends, whatever became of this machine
LONGEST_S = 12 * 3600  #: likewise, for a server of which the connection is lost without a word
TOKEN_BYTES = 24
_CAP_BYTES = 4096
_LINE_BYTES = 300


@cache
def program() -> str:
    """The program by which a host serves, without the comment at its head."""
    return perl(Path(__file__).with_name("serve.pl"))


@dataclass
class PeerServer:
    """The server of one host. ``files`` are the paths that it may hand out, ``name`` its unit's on the host."""

    host: str
    files: Sequence[str]
    settings: FileSettings
    name: str
    _lifeline: HeldInput = field(init=False)

    def __post_init__(self) -> None:
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._lifeline = HeldInput(self._token)

    def run(self, shell: RootShell, begun: Callable[[Grant], None]) -> None:
        """Serve until ``stop``, or until the connection is lost; not at all where others do not know how to reach it.

        ``begun`` is called once it listens, with where others find it. Raises ``HostError``.
        """
        address = shell.session.ends.remote
        if not address:
            return
        heard = _Heard()

        def take(data: bytes) -> None:
            port = heard.port(data)
            if port:
                begun(Grant(address, port, self._token))

        try:
            with guarded(self.host):
                output = shell.stream(
                    self.script(address), stdin=self._lifeline, timeout_s=LONGEST_S + 60.0,
                    cap_bytes=_CAP_BYTES, on_stdout=take,
                )  # fmt: skip
        finally:
            self._lifeline.end()
        if output.status != 0 and not heard.why:
            raise HostError(self.host, str(shell.failed("it serves no files", output).sentence))

    def stop(self) -> None:
        """End it."""
        self._lifeline.end()

    def script(self, address: str) -> str:
        """A root program that serves at the host's own ``address``; it reads the token, and ends with its input."""
        return sh_file(
            __file__,
            "serve.sh",
            program=program(),
            unit=self.name,
            address=address,
            port=self.settings.peer_ports,
            uploads=self.settings.uploads,
            rate=self.settings.rate,
            idle_s=IDLE_S,
            longest_s=LONGEST_S,
            files=tuple(self.files),
        )


class _Heard:
    """What the program says: the port at which it listens, or why it cannot."""

    def __init__(self) -> None:
        self.why = ""
        self._rest = b""
        self._listens = False

    def port(self, data: bytes) -> int:
        """The port, once; else 0."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_LINE_BYTES]
        for line in lines:
            words = line[:_LINE_BYTES].decode("utf-8", "replace").split(maxsplit=1)
            if words[:1] == ["cannot"]:
                self.why = short(" ".join(words[1:]))
            number = whole(words[1]) if words[:1] == ["serving"] and len(words) > 1 else None
            if number is not None and 1024 <= number <= 65535 and not self._listens:
                self._listens = True
                return number
        return 0
