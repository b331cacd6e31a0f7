"""Requests over HTTP, each in a thread of its own: who gets a place, what a request may be, and one answer.

h11 says what a request is; whatever it or RFC 9112 does not take is given no file. Nothing that a peer claims of itself
counts (``Forwarded``, ``X-Forwarded-For``, PROXY lines): a peer is the address that its connection comes from.
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

REQUESTS_AT_ONCE = 64  #: that have not shown a token; a host fetches one file after the other
REQUESTS_BY_PEER = 8  #: of these; there may be several hosts behind one address
STRANGERS_AT_ONCE = 8  #: of peers that may fetch nothing here, who are told so
REQUEST_TIMEOUT_S = 15.0  #: without a byte from or to a peer
REQUEST_LONGEST_S = 60.0  #: for all of a request and a short answer
PIECE_BYTES = 8 * 1024 * 1024  #: of a file, which is sent in such pieces
PIECE_LONGEST_S = 64.0  #: for each of them: 1 Mbit/s
REQUEST_BYTES = 8192  #: of one request with its headers; wget's has 150, cloud-init's 200
READ_BYTES = 4096  #: at once
VERSIONS = (b"1.0", b"1.1")
TYPE = b"text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A GET or HEAD: its path, the address that it comes from, and its headers, by their names in small letters.

    A header that stands there more than once has no value.
    """

    path: str
    peer: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilePart:
    """``size`` bytes of an open file from ``offset`` on. Whoever answers with it closes the file in ``Reply.over``."""

    file: BinaryIO
    offset: int
    size: int


def _unheard(_taken: int, _whole: bool) -> None:
    """Nobody asks what came of it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a request gets. ``over`` is called once, when nothing more is sent: with the bytes of ``content`` that were
    taken, and whether the peer asked for it and got it whole."""

    status: HTTPStatus
    content: bytes | FilePart = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    over: Callable[[int, bool], None] = _unheard

    @property
    def size(self) -> int:
        """The bytes of the content."""
        return self.content.size if isinstance(self.content, FilePart) else len(self.content)


class Served(Protocol):
    """What is served."""

    def expects(self, peer: str, /) -> bool:
        """Whether there is something that this peer may fetch."""

    def answer(self, request: HttpRequest, /) -> Reply:
        """What a request gets."""

    def failed(self, peer: str, reason: str, /) -> None:
        """Note that a peer did not come to its request, because TLS failed for this reason."""


def listen(what: str, address: str, port: int, served: Served, tls: ssl.SSLContext | None = None) -> Server:
    """A server at this address; ``what`` it serves stands in sentences. Raises ``InputError`` for an address that is
    not this machine's, and ``HostwrightError``."""
    where = f"{address}:{port}"
    try:
        return Server(address, port, served, tls)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"{what} cannot be served at {where}: this machine does not have that address") from error
        reason = "something else uses that port" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
        raise HostwrightError(f"{what} cannot be served at {where}: {reason}; free it, or name another") from error


class Server(ThreadingMixIn, TCPServer):
    """Each request in its own thread, as many as there are places."""

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
        """Take a connection; its handshake is made in its own thread, for here it would hold up all others."""
        connection, peer = super().get_request()
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, peer

    def process_request(self, request: Any, client_address: Any) -> None:
        """Reply in a thread of its own, for as long as the peer keeps its place."""
        places = self.expected if self.served.expects(client_address[0]) else self.strangers
        places.take(request, client_address[0])
        try:
            super().process_request(request, client_address)
        except BaseException:
            places.leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Reply, and make room for another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            for places in (self.expected, self.strangers):
                places.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a host that goes away in the middle asks again, and paths are secrets."""


@contextmanager
def _within(seconds: float, connection: socket.socket) -> Iterator[None]:
    """The block's time on a connection, which is ended in the middle when that is over."""
    end = threading.Timer(seconds, hang_up, (connection,))
    end.daemon = True
    end.start()
    try:
        yield
    finally:
        end.cancel()


class Handler(BaseRequestHandler):
    """One request and its answer: GET and HEAD of exactly what is published; no listing, and no log."""

    server: Server

    def handle(self) -> None:
        """Read the request, answer it, and close the connection."""
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
        """Read the request, and send its answer but for a file; the answer, and whether its content was asked for.

        ``None`` where nothing of it could be sent.
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
        except ssl.SSLError as error:  # OpenSSL's own word for it, nothing that the peer wrote
            self.server.served.failed(self.client_address[0], error.reason or "TLS failed")
            return False
        return True

    def _read(self, parser: h11.Connection) -> h11.Request | None:
        """The request; ``None`` where the peer goes away before its end."""
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
            if size > REQUEST_BYTES:  # also what h11 passes over, such as empty lines before a request
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
        """One answer, after which the connection is closed; a file is sent behind it."""
        headers = [
            (b"Content-Type", TYPE), (b"Content-Length", str(answer.size).encode()), (b"Cache-Control", b"no-store"),
            (b"Connection", b"close"), *answer.headers,
        ]  # fmt: skip
        with suppress(h11.LocalProtocolError):  # nothing may be said any more
            response = h11.Response(status_code=answer.status, headers=headers, reason=answer.status.phrase)
            head = parser.send(response) or b""
            short = answer.content if body and isinstance(answer.content, bytes) else b""
            self.request.sendall(head + short)

    def _send_file(self, part: FilePart) -> int:
        """Send a file in pieces, each in its time; the bytes that were taken."""
        done = 0
        with suppress(OSError):  # the peer went away or was too slow
            while done < part.size:
                at, size = part.offset + done, min(PIECE_BYTES, part.size - done)
                try:
                    with _within(PIECE_LONGEST_S, self.request):
                        self.request.sendfile(part.file, at, size)
                finally:
                    sent = part.file.tell() - at
                    done += max(sent, 0)
                if sent < size:  # it is shorter than it was
                    break
        return done


def _path(target: str) -> str:
    """The path that a request is for; a proxy may write the whole URL (RFC 9112, 3.2.2), whose authority is ours."""
    if target.startswith("/"):
        return target
    try:
        parts = urlsplit(target)
    except ValueError:
        return ""
    whole = parts.scheme in ("http", "https") and parts.netloc and not (parts.query or parts.fragment)
    return parts.path if whole else ""
