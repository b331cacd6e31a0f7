"""The HTTP servers from which hosts fetch files: one on this machine, and one on each host that serves other hosts.

A server returns the file with the requested sha256 to a client with a valid token. Plain HTTP suffices: the files are
public, and hosts receive the files' checksums over SSH.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hostwright.apply.delivery.looking import StoredFile
from hostwright.apply.delivery.pulling import Grant, HeldInput, perl
from hostwright.apply.delivery.sources.settings import FileSettings, Ports
from hostwright.common.errors import HostError, HostwrightError
from hostwright.common.quoting import sh_file
from hostwright.common.text import short
from hostwright.common.untrusted import guarded, whole
from hostwright.transport.exchange import plain_address
from hostwright.transport.serving.answering import FilePart, HttpRequest, Reply, Server, listen
from hostwright.transport.serving.places import peer_name

if TYPE_CHECKING:
    from hostwright.transport.root.rootshell import RootShell

TOKEN_BYTES = 24  #: number of random bytes in the token with which a client fetches a file
STOP_POLL_S = 0.2  #: seconds between two checks of the HTTP server's shutdown flag
IDLE_S = 1800  #: seconds without a request after which the server on a host exits (our choice)
LONGEST_S = 12 * 3600  #: seconds after which the server on a host always exits (our choice)
_CAP_BYTES = 4096
_LINE_BYTES = 300
_RANGE = re.compile(r"bytes=([0-9]{1,15})-", re.ASCII)


@dataclass(slots=True)
class _Given:
    token: str = field(repr=False)
    item: StoredFile
    peer: str  #: address or name of the client that should use the token; empty if unknown
    bound: bool  #: whether only ``peer`` may use the token
    shown: bool = False


class FileServer:
    """The file server on this machine, which serves each token's file once. Thread-safe."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        self._given: list[_Given] = []
        self._servers: dict[tuple[str, Ports], Server] = {}
        self._closed = False
        self._lock = threading.Lock()

    def grant(self, item: StoredFile, address: str, ports: Ports, peer: str, *, bound: bool = False) -> Grant:
        """Allow ``peer`` to fetch the file ``item`` once from ``address`` of this machine. Start a server at that
        address if necessary.

        ``peer`` is an address, or a name; a name is not checked. With ``bound``, only ``peer`` may use the token.

        Raises ``InputError`` or ``HostwrightError`` if no server can listen at this address.
        """
        with self._lock:
            if self._closed:
                raise HostwrightError("the file server of this run is closed")
            server = self._servers.get((address, ports)) or self._open(address, ports)
            known = plain_address(peer)
            given = _Given(secrets.token_urlsafe(TOKEN_BYTES), item, known and peer_name(known), bound and bool(known))
            self._given.append(given)
            return Grant(address, int(server.server_address[1]), given.token)

    def withdraw(self, grant: Grant) -> None:
        """Revoke the token of ``grant``."""
        with self._lock:
            self._given = [given for given in self._given if given.token != grant.token]

    def close(self) -> None:
        """Close all listening sockets, and end the transfers in progress."""
        with self._lock:
            self._closed = True
            servers = list(self._servers.values())
            self._servers.clear()
            self._given.clear()
        for server in servers:
            server.shutdown()
            server.server_close()
            server.expected.clear()
            server.strangers.clear()

    def expects(self, peer: str) -> bool:
        """Return whether a token was issued for the client ``peer``. Implements ``Served``."""
        name = peer_name(peer)
        with self._lock:
            return any(given.peer == name for given in self._given)

    def failed(self, peer: str, reason: str) -> None:
        """Do nothing, because this server does not use TLS. Implements ``Served``."""

    def answer(self, request: HttpRequest) -> Reply:
        """Return the requested part of a file if the request has the file's token. Implements ``Served``."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        wanted = request.path.removeprefix("/")
        with self._lock:
            given = self._of(token) if scheme == "Bearer" else None
            stranger = given is not None and given.bound and given.peer != peer_name(request.peer)
            if given is None or given.shown or stranger or given.item.sha256 != wanted:
                return Reply(HTTPStatus.FORBIDDEN)
            given.shown = True
        return self._file(given, request.headers.get("range"))

    def _of(self, token: str) -> _Given | None:
        """Return the entry of ``token``. The duration of the comparison reveals nothing about valid tokens."""
        shown, found = token.encode("utf-8", "replace"), None
        for given in self._given:
            if secrets.compare_digest(given.token.encode(), shown):
                found = given
        return found

    def _file(self, given: _Given, asked: str | None) -> Reply:
        item, match = given.item, _RANGE.fullmatch("bytes=0-" if asked is None else asked)
        start = int(match[1]) if match else item.size
        if start >= item.size:
            return Reply(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
        try:
            file = item.path.open("rb")
        except OSError:
            return Reply(HTTPStatus.GONE)
        whole_range = f"bytes {start}-{item.size - 1}/{item.size}".encode()
        return Reply(
            HTTPStatus.OK if asked is None else HTTPStatus.PARTIAL_CONTENT,
            FilePart(file, start, item.size - start),
            () if asked is None else ((b"Content-Range", whole_range),),
            partial(self._over, file),
        )

    def _over(self, file: BinaryIO, taken: int, _whole: bool) -> None:
        file.close()
        with self._lock:
            self.sent_bytes += taken

    def _open(self, address: str, ports: Ports) -> Server:
        for port in range(ports.first, ports.last + 1):
            try:
                server = listen("files", address, port, self)
            except HostwrightError:
                if port == ports.last:
                    raise
                continue
            threading.Thread(target=server.serve_forever, args=(STOP_POLL_S,), name="files", daemon=True).start()
            self._servers[address, ports] = server
            return server
        raise AssertionError("internal error: the range of ports is empty")


@cache
def program() -> str:
    """Return the Perl program that serves files on a host, without the leading comment."""
    return perl(Path(__file__).with_name("serve.pl"))


@dataclass
class PeerServer:
    """The file server on one host. The server exits when the connection to the host ends.

    ``files`` are the paths that the server may serve; ``name`` is the name of the server's systemd unit on the host.
    """

    host: str
    files: Sequence[str]
    settings: FileSettings
    name: str
    _token: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES), repr=False)
    _lifeline: HeldInput = field(init=False)

    def __post_init__(self) -> None:
        self._lifeline = HeldInput(self._token)

    def run(self, shell: RootShell, begun: Callable[[Grant], None]) -> None:
        """Run the server until ``stop`` or a lost connection. If the host's address is unknown, return at once.

        ``begun`` receives the permission for other hosts as soon as the server listens. Raises ``HostError`` if the
        server fails.
        """
        address = shell.session.ends.remote
        if not address:
            return
        reader = _PortReader()

        def take(data: bytes) -> None:
            port = reader.port(data)
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
        if output.status != 0 and not reader.why:
            raise HostError(self.host, str(shell.failed("the file server on the host failed", output).sentence))

    def stop(self) -> None:
        """Make the file server on the host exit."""
        self._lifeline.end()

    def script(self, address: str) -> str:
        """Return a program for root that serves the files at the host's ``address``.

        The program reads the token from its standard input, and exits when that input is closed.
        """
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


class _PortReader:
    def __init__(self) -> None:
        self.why = ""
        self._rest = b""
        self._listens = False

    def port(self, data: bytes) -> int:
        """Return the port if ``data``, the next chunk of output, completes the line with the port; else 0."""
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
