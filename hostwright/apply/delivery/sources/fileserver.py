"""This machine's HTTP server for the files of one run: a file by its sha256, once, to who shows the token for it.

It listens where hosts need it, from the first file that one of them fetches to the end of the run. Plain HTTP: what it
serves are vendors' files, whose sums hosts have over SSH.
"""

from __future__ import annotations

import re
import secrets
import threading
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import BinaryIO

from hostwright.apply.delivery.looking import StoredFile
from hostwright.apply.delivery.pulling import Grant
from hostwright.apply.delivery.sources.settings import Ports
from hostwright.common.errors import HostwrightError
from hostwright.transport.exchange import plain_address
from hostwright.transport.serving.answering import FilePart, Reply, Request, Server, listen
from hostwright.transport.serving.places import peer_name

TOKEN_BYTES = 24  #: of chance: 192 bits
STOP_POLL_S = 0.2  #: between two looks whether the server is to end
_RANGE = re.compile(r"bytes=([0-9]{1,15})-", re.ASCII)


@dataclass(slots=True)
class _Given:
    """One token: what it is for, and whether it was shown already."""

    token: str = field(repr=False)
    item: StoredFile
    peer: str  #: the expected peer, an address or a name; empty: unknown
    bound: bool  #: whether nobody else may show it
    shown: bool = False


class FileServer:
    """Serves files of a run until ``close``. All methods may be called from any thread."""

    def __init__(self) -> None:
        self.sent_bytes = 0  #: of all files, until now
        self._given: list[_Given] = []
        self._servers: dict[tuple[str, Ports], Server] = {}
        self._closed = False
        self._lock = threading.Lock()

    def grant(self, item: StoredFile, address: str, ports: Ports, peer: str, *, bound: bool = False) -> Grant:
        """Let ``peer`` (an address, or a name, which is not checked) fetch a file once, from this machine's
        ``address``; with ``bound``, nobody but it. The server is started for it.

        Raises ``InputError`` and ``HostwrightError`` where nothing can be served there.
        """
        with self._lock:
            if self._closed:
                raise HostwrightError("files are served only while a run lasts")
            server = self._servers.get((address, ports)) or self._open(address, ports)
            known = plain_address(peer)
            given = _Given(secrets.token_urlsafe(TOKEN_BYTES), item, known and peer_name(known), bound and bool(known))
            self._given.append(given)
            return Grant(address, int(server.server_address[1]), given.token)

    def withdraw(self, grant: Grant) -> None:
        """The token is of no use any more."""
        with self._lock:
            self._given = [given for given in self._given if given.token != grant.token]

    def close(self) -> None:
        """Serve nothing any more, and end what is being sent."""
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
        """See ``Served``."""
        name = peer_name(peer)
        with self._lock:
            return any(given.peer == name for given in self._given)

    def failed(self, peer: str, reason: str) -> None:
        """See ``Served``: there is no TLS here."""

    def answer(self, request: Request) -> Reply:
        """See ``Served``: the file, or the rest of it, to who shows its token for the first time."""
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
        """What a token is for, found in a time that says nothing of other tokens."""
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
        whole = f"bytes {start}-{item.size - 1}/{item.size}".encode()
        return Reply(
            HTTPStatus.OK if asked is None else HTTPStatus.PARTIAL_CONTENT,
            FilePart(file, start, item.size - start),
            () if asked is None else ((b"Content-Range", whole),),
            partial(self._over, file),
        )

    def _over(self, file: BinaryIO, taken: int, _whole: bool) -> None:
        file.close()
        with self._lock:
            self.sent_bytes += taken

    def _open(self, address: str, ports: Ports) -> Server:
        """Listen at the first of these ports that is free."""
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
        raise AssertionError("a range has at least one port")
