"""Servers of seeds (files for installers) in one run, one for each address and port.

A server starts when the first host needs it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Self

from hostwright.common.errors import InputError
from hostwright.common.places import state_root
from hostwright.rebuild.install.seeds.fields import endpoint
from hostwright.rebuild.install.seeds.rendering import Seed
from hostwright.rebuild.install.seeds.serving import SeedServer
from hostwright.rebuild.install.seeds.settings import Install, Reinstall
from hostwright.rebuild.install.tls.authority import Authority, open_authority

PLAIN = (
    "its seed goes over plain HTTP, which others on that network can read and change: set hostwright_install_https, or "
    "use a network of its own"
)


@dataclass(frozen=True, slots=True)
class Place:
    """The URL of one host's seed, and its server. ``url`` is empty if the site's command needs no seed.

    With an ``authority`` for certificates, the seed is served over HTTPS.
    """

    host: str
    url: str = ""
    server: SeedServer | None = None
    only_from: str | None = None
    authority: Authority | None = None

    def publish(self, seed: Seed) -> None:
        """Start to serve ``seed`` below ``url``."""
        if self.server is not None:
            self.server.publish(self.host, seed, only_from=self.only_from)

    def fetched(self) -> frozenset[str]:
        """Names of the seed's files that were fetched completely."""
        return self.server.fetched(self.host) if self.server is not None else frozenset()

    def withdraw(self) -> frozenset[str]:
        """Stop serving the seed; return the names of the files that were fetched completely."""
        return self.server.withdraw(self.host) if self.server is not None else frozenset()

    def on_the_wire(self, seed: Seed) -> str:
        """Text for the operator about the protection of ``seed`` in transit, and about a setting that improves it."""
        if self.authority:
            part = self.authority.part
            return (
                f"its seed goes over HTTPS: pass {part} to its installer as an additional initrd, to trust this server"
            )
        if seed.checksum:
            return f"{PLAIN}; with {seed.checksum} among its kernel's arguments, it takes no other preseed file"
        return PLAIN

    def came(self) -> str:
        """Part of an error text: the clients that could not fetch the seed; empty without such clients."""
        if self.server is None:
            return ""
        if others := ", ".join(sorted(self.server.refused(self.host))):
            return f" (requested by {others}, which may not: see hostwright_install_allow_from)"
        if self.authority and (failures := "; ".join(sorted(self.server.failures(self.host)))):
            return f" (it came, but HTTPS failed with {failures}: does it get {self.authority.part}?)"
        return ""


class SeedServers:
    """Starts seed servers at the addresses from the inventory, and stops them when the context ends."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._servers: dict[tuple[str, int], tuple[SeedServer, Authority | None]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @contextmanager
    def place(self, host: str, settings: Install | Reinstall) -> Iterator[Place]:
        """Reserve a URL for the seed of ``host``. The seed is served during the context only."""
        if not settings.serve:
            yield Place(host)
            return
        server, authority = self._server(settings.serve, https=settings.https)
        only_from = settings.only_from if isinstance(settings, Install) else _only_from(settings)
        url = server.reserve(host, path=settings.path)
        try:
            yield Place(host, url, server, only_from, authority)
        finally:
            server.withdraw(host)

    def _server(self, serve: str, *, https: bool) -> tuple[SeedServer, Authority | None]:
        where = endpoint(serve)
        with self._lock:
            if where not in self._servers:
                authority = open_authority(state_root()) if https else None
                tls = authority.context(where[0]) if authority else None
                self._servers[where] = self._open.enter_context(SeedServer(*where, tls)), authority
            server, authority = self._servers[where]
        if https != (authority is not None):
            raise InputError(f"{serve} is used for seeds with both http and https; use another port for one of them")
        return server, authority


def _only_from(settings: Reinstall) -> str | None:
    return settings.allow_from if settings.allow_from not in ("", "any") else None
