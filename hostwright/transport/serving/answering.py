"""Requests to a seed server, each in a thread of its own: who gets a place, what a request may be, and one answer.

h11 says what a request is; whatever it or RFC 9112 does not take is given no file. Nothing that a peer claims of itself
counts (``Forwarded``, ``X-Forwarded-For``, PROXY lines): a peer is the address that its connection comes from.
"""

from __future__ import annotations

import errno
import socket
import ssl
import threading
from contextlib import suppress
from http import HTTPStatus
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from typing import Any, Protocol
from urllib.parse import urlsplit

import h11

from hostwright.common.errors import HostwrightError, InputError
from hostwright.transport.serving.places import Places, hang_up

REQUESTS_AT_ONCE = 64  #: an installer fetches one file after the other; further connections are closed at once
REQUESTS_BY_PEER = 8  #: of these; there may be several installers behind one address
STRANGERS_AT_ONCE = 8  #: of peers that may fetch nothing here, who are told so
REQUEST_TIMEOUT_S = 15.0  #: without a byte from or to an installer
REQUEST_LONGEST_S = 60.0  #: for all of a request; the files have a few kilobytes
REQUEST_BYTES = 8192  #: of one request with its headers; wget's has 150, cloud-init's 200
READ_BYTES = 4096  #: at once
VERSIONS = (b"1.0", b"1.1")
TYPE = b"text/plain; charset=utf-8"


class Seeds(Protocol):
    """What is served: see ``SeedServer``."""

    def expects(self, peer: str, /) -> bool:
        """Whether there is a seed that this peer may fetch."""

    def answer(self, path: str, peer: str, /) -> tuple[HTTPStatus, str, str, bytes]:
        """What a request gets: status, and where it is 200 the host, the file's name and its content."""

    def sent(self, host: str, name: str, peer: str, /) -> None:
        """Note that a file was sent as a whole, and to whom."""

    def failed(self, peer: str, reason: str, /) -> None:
        """Note that a peer did not come to its request, because TLS failed for this reason."""


def listen(address: str, port: int, seeds: Seeds, tls: ssl.SSLContext | None) -> Server:
    """A server at this address. Raises ``InputError`` for one that is not this machine's, and ``HostwrightError``."""
    where = f"{address}:{port}"
    try:
        return Server(address, port, seeds, tls)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"seeds cannot be served at {where}: this machine does not have that address") from error
        reason = "something else uses that port" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
        raise HostwrightError(f"seeds cannot be served at {where}: {reason}; free it, or name another") from error


class Server(ThreadingMixIn, TCPServer):
    """Each request in its own thread, as many as there are places."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = REQUESTS_AT_ONCE

    def __init__(self, address: str, port: int, seeds: Seeds, tls: ssl.SSLContext | None = None):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.seeds, self.tls = seeds, tls
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
        """Answer in a thread of its own, where the peer gets a place; otherwise close the connection."""
        places = self.expected if self.seeds.expects(client_address[0]) else self.strangers
        if not places.take(request, client_address[0]):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            places.leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer within the time that a request may take, and make room for another one."""
        end = threading.Timer(REQUEST_LONGEST_S, hang_up, (request,))
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            for places in (self.expected, self.strangers):
                places.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: an installer that goes away in the middle asks again, and paths are secrets."""


class Handler(BaseRequestHandler):
    """One request and its answer: GET and HEAD of exactly what is published; no listing, and no log."""

    server: Server

    def handle(self) -> None:
        """Read the request, answer it, and close the connection."""
        self.request.settimeout(REQUEST_TIMEOUT_S)
        if self.server.tls is not None and not self._shook_hands():
            return
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES)
        try:
            request = self._read(parser)
        except h11.RemoteProtocolError as error:
            self._send(parser, HTTPStatus(error.error_status_hint), b"", body=False)
            return
        if request is not None:
            self._answer(parser, request)

    def _shook_hands(self) -> bool:
        try:
            self.request.do_handshake()
        except ssl.SSLError as error:  # OpenSSL's own word for it, nothing that the peer wrote
            self.server.seeds.failed(self.client_address[0], error.reason or "TLS failed")
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

    def _answer(self, parser: h11.Connection, request: h11.Request) -> None:
        if request.http_version not in VERSIONS:
            self._send(parser, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, b"", body=False)
            return
        if request.method not in (b"GET", b"HEAD"):
            self._send(parser, HTTPStatus.NOT_IMPLEMENTED, b"", body=False)
            return
        peer, body = self.client_address[0], request.method == b"GET"
        status, host, name, content = self.server.seeds.answer(_path(request.target.decode("ascii")), peer)
        self._send(parser, status, content, body=body)
        if body and status == HTTPStatus.OK:
            self.server.seeds.sent(host, name, peer)

    def _send(self, parser: h11.Connection, status: HTTPStatus, content: bytes, *, body: bool) -> None:
        """One answer, after which the connection is closed."""
        headers = [
            (b"Content-Type", TYPE), (b"Content-Length", str(len(content)).encode()), (b"Cache-Control", b"no-store"),
            (b"Connection", b"close"),
        ]  # fmt: skip
        with suppress(h11.LocalProtocolError):  # nothing may be said any more
            response = h11.Response(status_code=status, headers=headers, reason=status.phrase)
            head = parser.send(response) or b""
            self.request.sendall(head + (content if body else b""))


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
