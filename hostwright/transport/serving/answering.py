"""HTTP server with a thread for each request, and limits for connections and requests.

Each connection gets one response. A request that h11 or RFC 9112 rejects receives no file. Headers about the client's
address are ignored (``Forwarded``, ``X-Forwarded-For``): the peer is the address that opened the connection.
"""

from __future__ import annotations

import errno
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from typing import Any, BinaryIO, Protocol
from urllib.parse import urlsplit

import h11

from hostwright.common.errors import HostwrightError, InputError
from hostwright.transport.serving.places import Places, hang_up

#: maximum number of parallel requests without a valid token
REQUESTS_AT_ONCE = 64
#: maximum number of parallel requests without a valid token from one address
REQUESTS_BY_PEER = 8
#: maximum number of parallel requests from peers that may not fetch anything
STRANGERS_AT_ONCE = 8
REQUEST_TIMEOUT_S = 15.0  #: time limit in seconds for a connection without any byte from or to the peer
REQUEST_LONGEST_S = 60.0  #: time limit in seconds for a request and a response without a file
PIECE_BYTES = 8 * 1024 * 1024  #: number of bytes of a file that one call of ``sendfile`` sends
PIECE_LONGEST_S = 64.0  #: time limit in seconds to send ``PIECE_BYTES``, so at least 1 Mbit/s
REQUEST_BYTES = 8192  #: maximum number of bytes of a request with headers. cloud-init's requests have 200 bytes.
READ_BYTES = 4096  #: maximum number of bytes of one call of ``recv``
VERSIONS = (b"1.0", b"1.1")
TYPE = b"text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A GET or HEAD request: path, address of the peer, and headers with lowercase names.

    A repeated header has an empty value.
    """

    path: str
    peer: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of an open file: ``size`` bytes from ``offset`` on. ``Reply.over`` must close the file."""

    file: BinaryIO
    offset: int
    size: int


def _unheard(_taken: int, _whole: bool) -> None:
    """Do nothing: the default for ``Reply.over``."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request.

    ``over`` is called once, at the end of the response, with the number of content bytes sent, and whether the peer
    requested and received the whole content.
    """

    status: HTTPStatus
    content: bytes | FilePart = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    over: Callable[[int, bool], None] = _unheard

    @property
    def size(self) -> int:
        """Number of bytes of the content."""
        return self.content.size if isinstance(self.content, FilePart) else len(self.content)


class Served(Protocol):
    """The content of a server, and the peers that may fetch it."""

    def expects(self, peer: str, /) -> bool:
        """Return whether the client with the address ``peer`` may fetch any content."""

    def answer(self, request: HttpRequest, /) -> Reply:
        """Return the response to ``request``."""

    def failed(self, peer: str, reason: str, /) -> None:
        """Record that TLS failed for the client with the address ``peer``, with the reason."""


def listen(what: str, address: str, port: int, served: Served, tls: ssl.SSLContext | None = None) -> Server:
    """Start a server for ``served`` at ``address`` and ``port``; ``what`` names the content in errors.

    Raises ``InputError`` for an address that this machine does not have, and ``HostwrightError`` if the server cannot
    be started.
    """
    where = f"{address}:{port}"
    try:
        return Server(address, port, served, tls)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(
                f"{what} cannot be served at {where}: this machine does not have this address; set another address"
            ) from error
        reason = "another program uses this port" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
        raise HostwrightError(f"{what} cannot be served at {where}: {reason}; free the port, or change it") from error


class Server(ThreadingMixIn, TCPServer):
    """An HTTP server with a thread for each request; ``Places`` limits its connections."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = REQUESTS_AT_ONCE

    def __init__(self, address: str, port: int, served: Served, tls: ssl.SSLContext | None = None):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.served, self.tls = served, tls
        self.expected = Places(REQUESTS_AT_ONCE, REQUESTS_BY_PEER)
        self.strangers = Places(STRANGERS_AT_ONCE, STRANGERS_AT_ONCE)
        super().__init__((address, port), Handler)

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection. The TLS handshake follows in the connection's thread."""
        connection, peer = super().get_request()
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, peer

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the request, and give its connection a slot."""
        places = self.expected if self.served.expects(client_address[0]) else self.strangers
        places.take(request, client_address[0])
        try:
            super().process_request(request, client_address)
        except BaseException:
            places.leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle the request, and free the slot of its connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            for places in (self.expected, self.strangers):
                places.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing, unlike the base class, because requested paths are secret."""


@contextmanager
def _within(seconds: float, connection: socket.socket) -> Iterator[None]:
    end = threading.Timer(seconds, hang_up, (connection,))
    end.daemon = True
    end.start()
    try:
        yield
    finally:
        end.cancel()


class Handler(BaseRequestHandler):
    """Handles one request: GET or HEAD of a published file. Lists no directories and writes no log."""

    server: Server

    def handle(self) -> None:
        """Read the request, respond, and close the connection."""
        self.request.settimeout(REQUEST_TIMEOUT_S)
        with _within(REQUEST_LONGEST_S, self.request):
            answer, body = self._answered()
        if answer is None:
            return
        taken = 0
        try:
            if body and isinstance(answer.content, FilePart):
                taken = self._send_file(answer.content)
            elif body:
                taken = answer.size
        finally:
            answer.over(taken, body and taken == answer.size)

    def _answered(self) -> tuple[Reply | None, bool]:
        """Return the response, and whether the peer requested its content (GET, not HEAD).

        The content of a file is not sent. The response is ``None`` if nothing could be sent.
        """
        if self.server.tls is not None and not self._shook_hands():
            return None, False
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES)
        try:
            request = self._read(parser)
        except h11.RemoteProtocolError as error:
            request, answer = None, Reply(HTTPStatus(error.error_status_hint))
        else:
            if request is None:
                return None, False
            answer = self._answer(request)
        body = request is not None and request.method == b"GET"
        if isinstance(answer.content, FilePart):
            self.server.expected.admit(self.request)
            self.server.strangers.admit(self.request)
        try:
            self._send(parser, answer, body=body)
        except BaseException:
            answer.over(0, False)
            raise
        return answer, body

    def _shook_hands(self) -> bool:
        try:
            self.request.do_handshake()
        except ssl.SSLError as error:  # The reason is a text of OpenSSL, so the peer cannot choose it.
            self.server.served.failed(self.client_address[0], error.reason or "TLS failed")
            return False
        return True

    def _read(self, parser: h11.Connection) -> h11.Request | None:
        size = 0
        while True:
            event = parser.next_event()
            if isinstance(event, h11.Request):
                return event
            if event is not h11.NEED_DATA:
                return None
            content = self.request.recv(READ_BYTES)
            size += len(content)
            if not content:
                return None
            # The limit also counts bytes that h11 skips, such as empty lines before a request.
            if size > REQUEST_BYTES:
                raise h11.RemoteProtocolError("the request is too long", error_status_hint=431)
            parser.receive_data(content)

    def _answer(self, request: h11.Request) -> Reply:
        if request.http_version not in VERSIONS:
            return Reply(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        if request.method not in (b"GET", b"HEAD"):
            return Reply(HTTPStatus.NOT_IMPLEMENTED)
        headers: dict[str, str] = {}
        for name, value in request.headers:
            key = name.decode("ascii")
            headers[key] = "" if key in headers else value.decode("latin-1")
        return self.server.served.answer(
            HttpRequest(_path(request.target.decode("ascii")), self.client_address[0], headers)
        )

    def _send(self, parser: h11.Connection, answer: Reply, *, body: bool) -> None:
        headers = [
            (b"Content-Type", TYPE), (b"Content-Length", str(answer.size).encode()), (b"Cache-Control", b"no-store"),
            (b"Connection", b"close"), *answer.headers,
        ]  # fmt: skip
        with suppress(h11.LocalProtocolError):  # h11 raises this error if no response is allowed any more.
            response = h11.Response(status_code=answer.status, headers=headers, reason=answer.status.phrase)
            head = parser.send(response) or b""
            short = answer.content if body and isinstance(answer.content, bytes) else b""
            self.request.sendall(head + short)

    def _send_file(self, part: FilePart) -> int:
        done = 0
        with suppress(OSError):  # After a disconnect or a timeout, the number of sent bytes is still returned.
            while done < part.size:
                at, size = part.offset + done, min(PIECE_BYTES, part.size - done)
                try:
                    with _within(PIECE_LONGEST_S, self.request):
                        self.request.sendfile(part.file, at, size)
                finally:
                    sent = part.file.tell() - at
                    done += max(sent, 0)
                if sent < size:  # Without this check, the loop would never end for a file that became shorter.
                    break
        return done


def _path(target: str) -> str:
    """Return the path of an HTTP request; empty if ``target`` has no path. A proxy may send a whole URL (RFC 9112,
    3.2.2).
    """
    if target.startswith("/"):
        return target
    try:
        parts = urlsplit(target)
    except ValueError:
        return ""
    whole = parts.scheme in ("http", "https") and parts.netloc and not (parts.query or parts.fragment)
    return parts.path if whole else ""
