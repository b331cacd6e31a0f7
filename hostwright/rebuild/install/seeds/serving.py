"""Server of seeds (files for installers, with the host key) for the hosts that are being installed.

Installers cannot authenticate. Therefore the URL path of a seed is random, or only some clients may fetch the seed.
Once a client has fetched a file, only this client may fetch further files. Serving ends with the installation. Clients
that may not fetch a seed can have only few connections.
"""

from __future__ import annotations

import ipaddress
import secrets
import ssl
import threading
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Self

from hostwright.common.errors import HostwrightError, InputError
from hostwright.rebuild.install.seeds.rendering import Seed
from hostwright.transport.serving.answering import HttpRequest, Reply, Server, listen
from hostwright.transport.serving.places import peer_address, peer_name

TOKEN_BYTES = 24  #: number of random bytes in the URL path of a seed
STOP_POLL_S = 0.05  #: seconds between two checks whether the seed server must stop
REMEMBERED = 16  #: maximum number of refused or failed clients that are stored per host


@dataclass(slots=True)
class _Published:
    path: str
    seed: Seed | None = None
    only_from: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    fetched: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    fetcher: str = ""  #: address of the first client that fetched a file. All other clients are refused.

    def admits(self, peer: str) -> bool:
        if self.fetcher and peer_name(peer) != self.fetcher:
            return False
        return self.only_from is None or peer_address(peer) in self.only_from


class SeedServer:
    """Serves the seeds of any number of hosts at one address and port, while the context is open. Thread-safe.

    Entering the context raises ``InputError`` for an address that this machine does not have, and ``HostwrightError``
    if the port is in use.
    """

    def __init__(self, address: str, port: int, tls: ssl.SSLContext | None = None):
        self._address, self._port, self._tls = address, port, tls
        self._hosts: dict[str, _Published] = {}
        self._changed = threading.Condition()
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = listen("seeds", self._address, self._port, self, self._tls)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(STOP_POLL_S,), name="seeds", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._hosts.clear()
            self._changed.notify_all()
        if self._server and self._thread:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self._server = self._thread = None

    def reserve(self, host: str, *, path: str = "") -> str:
        """Reserve a URL for the seed of ``host`` until ``withdraw``, and return this URL without a trailing slash.

        The URL ends with ``path``, by default a random path. Raises ``InputError`` if another host has the same path.
        """
        with self._changed:
            kept = self._hosts.get(host)
            if kept is None:
                kept = _Published(path.strip("/") or secrets.token_urlsafe(TOKEN_BYTES))
                self._check_free(host, kept.path)
                self._hosts[host] = kept
            return self._url(kept.path)

    def publish(self, host: str, seed: Seed, *, only_from: str | None, path: str = "") -> str:
        """Serve ``seed`` to the clients in ``only_from`` (an address or a network; ``None``: all); return the seed's
        URL.

        An earlier seed of ``host`` and the record of its fetched files are dropped.
        """
        url = self.reserve(host, path=path)
        network = ipaddress.ip_network(only_from, strict=False) if only_from else None
        with self._changed:
            self._hosts[host] = _Published(self._hosts[host].path, seed, network)
        return url

    def withdraw(self, host: str) -> frozenset[str]:
        """Stop serving the seed of ``host``; return the names of the files that were sent completely."""
        with self._changed:
            published = self._hosts.pop(host, None)
            self._changed.notify_all()
            return frozenset(published.fetched) if published else frozenset()

    def fetched(self, host: str) -> frozenset[str]:
        """Names of the files that were sent completely since this host's seed was published."""
        with self._changed:
            return frozenset(self._hosts[host].fetched) if host in self._hosts else frozenset()

    def refused(self, host: str) -> frozenset[str]:
        """Addresses of the clients with refused requests for this host's seed."""
        with self._changed:
            return frozenset(self._hosts[host].refused) if host in self._hosts else frozenset()

    def failures(self, host: str) -> frozenset[str]:
        """Clients that may fetch this host's seed but failed at the TLS handshake: addresses with OpenSSL's reason."""
        with self._changed:
            return frozenset(self._hosts[host].failed) if host in self._hosts else frozenset()

    def wait_fetched(self, host: str, timeout_s: float, *, name: str = "") -> bool:
        """Wait until the file ``name`` (default: ``Seed.first``) has been fetched; return ``False`` after
        ``timeout_s``.

        Returns ``False`` at once if the seed is withdrawn.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._settled(host, name), timeout_s)
            return host in self._hosts and self._settled(host, name)

    def expects(self, peer: str) -> bool:
        """Whether the client with the address ``peer`` may fetch at least one host's seed."""
        with self._changed:
            return any(kept.admits(peer) for kept in self._hosts.values() if kept.seed)

    def answer(self, request: HttpRequest) -> Reply:
        """Reply to ``request`` with a file of a seed, or with an error."""
        folder, _, name = request.path.removeprefix("/").rpartition("/")
        with self._changed:
            for host, published in self._hosts.items():
                if not secrets.compare_digest(published.path.encode(), folder.encode("utf-8", "replace")):
                    continue
                if not published.admits(request.peer):
                    if len(published.refused) < REMEMBERED:
                        published.refused.add(str(peer_address(request.peer)))
                    return Reply(HTTPStatus.FORBIDDEN)
                content = published.seed.files.get(name) if published.seed else None
                if content is None:
                    break
                return Reply(HTTPStatus.OK, content, over=partial(self._sent, host, name, request.peer))
        return Reply(HTTPStatus.NOT_FOUND)

    def _sent(self, host: str, name: str, peer: str, _taken: int, whole: bool) -> None:
        with self._changed:
            if whole and host in self._hosts:
                self._hosts[host].fetched.add(name)
                self._hosts[host].fetcher = self._hosts[host].fetcher or peer_name(peer)
                self._changed.notify_all()

    def failed(self, peer: str, reason: str) -> None:
        """Record that ``peer`` failed at the TLS handshake for ``reason``, if this client may fetch a seed."""
        with self._changed:
            for published in self._hosts.values():
                if published.admits(peer) and len(published.failed) < REMEMBERED:
                    published.failed.add(f"{peer_address(peer)}: {reason.lower().replace('_', ' ')}")

    def _settled(self, host: str, name: str) -> bool:
        published = self._hosts.get(host)
        if published is None:
            return True
        wanted = name or (published.seed.first if published.seed else "")
        return wanted in published.fetched

    def _check_free(self, host: str, path: str) -> None:
        other = next((name for name, published in self._hosts.items() if published.path == path), None)
        if other is not None:
            raise InputError(
                f"{host} and {other} have the same path {path!r} for their seeds; give each host its own path"
            )

    def _url(self, path: str) -> str:
        if self._server is None:
            raise HostwrightError("the seed server is not running; use its context manager")
        shown = f"[{self._address}]" if ":" in self._address else self._address
        return f"{'https' if self._tls else 'http'}://{shown}:{self._server.server_address[1]}/{path}"
