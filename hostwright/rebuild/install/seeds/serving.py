"""Seeds for the time of an installation, to the hosts that they are for.

Installers cannot log in. What protects the private host key is: the network on which hosts are installed; a path that
cannot be guessed, or a fixed path with the addresses that may fetch it; that the first one that fetches it is the only
one; and that it is served no longer than the installation lasts. Peers are checked when they connect: strangers have a
few places of their own.
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

TOKEN_BYTES = 24  #: of chance in a path: 192 bits
STOP_POLL_S = 0.05  #: between two looks whether the server is to end
REMEMBERED = 16  #: refused addresses for each host


@dataclass(slots=True)
class _Published:
    """What is known of one host: the path of its seed, and who has fetched what."""

    path: str
    seed: Seed | None = None
    only_from: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    fetched: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
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

    def failures(self, host: str) -> frozenset[str]:
        """Who came for this host's seed and could not agree with us on TLS, each with OpenSSL's word for why."""
        with self._changed:
            return frozenset(self._hosts[host].failed) if host in self._hosts else frozenset()

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

    def answer(self, request: HttpRequest) -> Reply:
        """What a request gets: the file where this peer may fetch it."""
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
        """Note whether a file was sent as a whole, and to whom."""
        with self._changed:
            if whole and host in self._hosts:
                self._hosts[host].fetched.add(name)
                self._hosts[host].fetcher = self._hosts[host].fetcher or peer_name(peer)
                self._changed.notify_all()

    def failed(self, peer: str, reason: str) -> None:
        """Note that a peer that may fetch a seed did not come to its request, because TLS failed for this reason."""
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
            raise InputError(f"{host} and {other} have the same path {path!r} for their seeds: give each its own")

    def _url(self, path: str) -> str:
        if self._server is None:
            raise HostwrightError("seeds are served only while the server's context lasts")
        shown = f"[{self._address}]" if ":" in self._address else self._address
        return f"{'https' if self._tls else 'http'}://{shown}:{self._server.server_address[1]}/{path}"
