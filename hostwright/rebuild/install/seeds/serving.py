"""Seeds over HTTP for the time of an installation, to the hosts that they are for.

The installers speak plain HTTP and cannot log in, so whoever sees the traffic sees the seed. What protects the private
host key is: a path that cannot be guessed, or a fixed path with the addresses that may fetch it; that the first one
that fetches it is the only one; that it is served no longer than the installation lasts; and the network on which hosts
are installed. Peers are checked when they connect: strangers have a few places of their own.
"""

from __future__ import annotations

import errno
import ipaddress
import secrets
import socket
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Self

from hostwright.common.errors import HostwrightError, InputError
from hostwright.rebuild.install.seeds.places import Places, hang_up, peer_address, peer_name
from hostwright.rebuild.install.seeds.rendering import Seed

TOKEN_BYTES = 24  #: of chance in a path: 192 bits
REQUESTS_AT_ONCE = 64  #: an installer fetches one file after the other; further connections are closed at once
REQUESTS_BY_PEER = 8  #: of these; there may be several installers behind one address
STRANGERS_AT_ONCE = 8  #: of peers that may fetch nothing here, who are told so
REQUEST_TIMEOUT_S = 15.0  #: without a byte from or to an installer
REQUEST_LONGEST_S = 60.0  #: for all of a request; the files have a few kilobytes
REQUEST_BYTES = 8192  #: of one request with its headers; wget's has 150, cloud-init's 200
STOP_POLL_S = 0.05  #: between two looks whether the server is to end
REMEMBERED = 16  #: refused addresses for each host
TYPE = "text/plain; charset=utf-8"


@dataclass(slots=True)
class _Published:
    """What is known of one host: the path of its seed, and who has fetched what."""

    path: str
    seed: Seed | None = None
    only_from: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    fetched: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    fetcher: str = ""  #: who fetched something first, and since then alone may

    def admits(self, peer: str) -> bool:
        """Whether this peer may fetch the seed."""
        if self.fetcher and peer_name(peer) != self.fetcher:
            return False
        return self.only_from is None or peer_address(peer) in self.only_from


class SeedServer:
    """Serves the seeds of any number of hosts at one address and port, while its context lasts.

    Entering it raises ``InputError`` for an address that is not this machine's, and ``HostwrightError`` where the port
    is taken. All methods may be called from any thread.
    """

    def __init__(self, address: str, port: int):
        self._address, self._port = address, port
        self._hosts: dict[str, _Published] = {}
        self._changed = threading.Condition()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = _listen(self._address, self._port, self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(STOP_POLL_S,), name="seeds", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._hosts.clear()
            self._changed.notify_all()
        if self._server and self._thread:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self._server = self._thread = None

    def reserve(self, host: str, *, path: str = "") -> str:
        """The URL (with no slash at its end) below which the host's seed will be found; it stays until ``withdraw``.

        ``path`` is a fixed path; without one it is a new one that cannot be guessed. Raises ``InputError`` for a path
        that another host has.
        """
        with self._changed:
            kept = self._hosts.get(host)
            if kept is None:
                kept = _Published(path.strip("/") or secrets.token_urlsafe(TOKEN_BYTES))
                self._check_free(host, kept.path)
                self._hosts[host] = kept
            return self._url(kept.path)

    def publish(self, host: str, seed: Seed, *, only_from: str | None, path: str = "") -> str:
        """Serve a host's seed at once, to ``only_from`` (an address or a network) or to anybody; its URL.

        A seed that was published for the host before is replaced, and counts as not fetched.
        """
        url = self.reserve(host, path=path)
        network = ipaddress.ip_network(only_from, strict=False) if only_from else None
        with self._changed:
            self._hosts[host] = _Published(self._hosts[host].path, seed, network)
        return url

    def withdraw(self, host: str) -> frozenset[str]:
        """Serve nothing of this host any more; what was fetched until then. What was not published is no mistake."""
        with self._changed:
            published = self._hosts.pop(host, None)
            self._changed.notify_all()
            return frozenset(published.fetched) if published else frozenset()

    def fetched(self, host: str) -> frozenset[str]:
        """The names of the files that were sent as a whole since the seed was published."""
        with self._changed:
            return frozenset(self._hosts[host].fetched) if host in self._hosts else frozenset()

    def refused(self, host: str) -> frozenset[str]:
        """The addresses that asked for this host's seed and were not given it: an installer with another address."""
        with self._changed:
            return frozenset(self._hosts[host].refused) if host in self._hosts else frozenset()

    def wait_fetched(self, host: str, timeout_s: float, *, name: str = "") -> bool:
        """Wait until a file was fetched (without ``name`` the one that an installer begins with); whether it was.

        Ends with false as soon as the seed is withdrawn.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._settled(host, name), timeout_s)
            return host in self._hosts and self._settled(host, name)

    def expects(self, peer: str) -> bool:
        """Whether there is a seed that this peer may fetch."""
        with self._changed:
            return any(kept.admits(peer) for kept in self._hosts.values() if kept.seed)

    def answer(self, target: str, peer: str) -> tuple[HTTPStatus, str, str, bytes]:
        """What a request gets: status, and where it is 200 the host, the file's name and its content."""
        folder, _, name = target.removeprefix("/").rpartition("/")
        with self._changed:
            for host, published in self._hosts.items():
                if not secrets.compare_digest(published.path.encode(), folder.encode("utf-8", "replace")):
                    continue
                if not published.admits(peer):
                    if len(published.refused) < REMEMBERED:
                        published.refused.add(str(peer_address(peer)))
                    return HTTPStatus.FORBIDDEN, "", "", b""
                content = published.seed.files.get(name) if published.seed else None
                return (HTTPStatus.NOT_FOUND, "", "", b"") if content is None else (HTTPStatus.OK, host, name, content)
        return HTTPStatus.NOT_FOUND, "", "", b""

    def sent(self, host: str, name: str, peer: str) -> None:
        """Note that a file was sent as a whole, and to whom."""
        with self._changed:
            if host in self._hosts:
                self._hosts[host].fetched.add(name)
                self._hosts[host].fetcher = self._hosts[host].fetcher or peer_name(peer)
                self._changed.notify_all()

    def _settled(self, host: str, name: str) -> bool:
        published = self._hosts.get(host)
        if published is None:
            return True
        wanted = name or (published.seed.first if published.seed else "")
        return wanted in published.fetched

    def _check_free(self, host: str, path: str) -> None:
        other = next((name for name, published in self._hosts.items() if published.path == path), None)
        if other is not None:
            raise InputError(f"{host} and {other} have the same path {path!r} for their seeds: give each its own")

    def _url(self, path: str) -> str:
        if self._server is None:
            raise HostwrightError("seeds are served only while the server's context lasts")
        shown = f"[{self._address}]" if ":" in self._address else self._address
        return f"http://{shown}:{self._server.server_address[1]}/{path}"


def _listen(address: str, port: int, seeds: SeedServer) -> _Server:
    where = f"{address}:{port}"
    try:
        return _Server(address, port, seeds)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"seeds cannot be served at {where}: this machine does not have that address") from error
        reason = "something else uses that port" if error.errno == errno.EADDRINUSE else str(error.strerror or error)
        raise HostwrightError(f"seeds cannot be served at {where}: {reason}; free it, or name another") from error


class _Server(ThreadingHTTPServer):
    """Each request in its own thread, as many as there are places."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = REQUESTS_AT_ONCE

    def __init__(self, address: str, port: int, seeds: SeedServer):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.seeds = seeds
        self.expected = Places(REQUESTS_AT_ONCE, REQUESTS_BY_PEER)
        self.strangers = Places(STRANGERS_AT_ONCE, STRANGERS_AT_ONCE)
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking the name service who this address is, which takes long where there is none."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "hostwright", self.server_address[1]

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
        """Print nothing: an installer that goes away in the middle asks again."""


class _Request:
    """What a peer sends, up to the most that a request may have."""

    def __init__(self, stream: Any):
        self._stream, self._left = stream, REQUEST_BYTES

    def readline(self, most: int) -> bytes:
        """One line. Raises ``ConnectionError`` where the request becomes too long."""
        line: bytes = self._stream.readline(min(most, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise ConnectionError("the request is too long")
        return line

    def close(self) -> None:
        self._stream.close()  # socketserver does


class _Handler(BaseHTTPRequestHandler):
    """GET and HEAD of exactly what is published; no listing, and no log."""

    server: _Server
    timeout = REQUEST_TIMEOUT_S
    server_version, sys_version = "hostwright", ""

    def setup(self) -> None:
        """Bound what is read."""
        super().setup()
        self.rfile: Any = _Request(self.rfile)

    def do_GET(self) -> None:
        """Send a file, and note that it was fetched."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Send what GET would, without the content."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        status, host, name, content = self.server.seeds.answer(self.path, self.client_address[0])
        self.send_response(status)
        self.send_header("Content-Type", TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if body and status == HTTPStatus.OK:
            self.wfile.write(content)
            self.wfile.flush()
            self.server.seeds.sent(host, name, self.client_address[0])

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: a path that cannot be guessed is a secret while it is served."""
