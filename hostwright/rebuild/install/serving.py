"""The seed servers of one run: one for each address and port, begun when the first host needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from hostwright.rebuild.install.seeds.fields import endpoint
from hostwright.rebuild.install.seeds.rendering import Seed
from hostwright.rebuild.install.seeds.serving import SeedServer
from hostwright.rebuild.install.seeds.settings import Install, Reinstall


@dataclass(frozen=True, slots=True)
class Place:
    """Where the seed of one host is served; without a server (a site's command that needs none) ``url`` is empty."""

    host: str
    url: str = ""
    server: SeedServer | None = None
    only_from: str | None = None

    def publish(self, seed: Seed) -> None:
        """Serve the seed from now on."""
        if self.server is not None:
            self.server.publish(self.host, seed, only_from=self.only_from)

    def fetched(self) -> frozenset[str]:
        """The files that were fetched as a whole."""
        return self.server.fetched(self.host) if self.server is not None else frozenset()

    def withdraw(self) -> frozenset[str]:
        """Serve nothing there any more; the files that were fetched until then."""
        return self.server.withdraw(self.host) if self.server is not None else frozenset()

    def refused(self) -> frozenset[str]:
        """The addresses that asked for the seed and may not have it."""
        return self.server.refused(self.host) if self.server is not None else frozenset()


class SeedServers:
    """Serves seeds at the addresses that the inventory names, while its context lasts."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._servers: dict[tuple[str, int], SeedServer] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @contextmanager
    def place(self, host: str, settings: Install | Reinstall) -> Iterator[Place]:
        """A place for the host's seed; nothing is served there any more when the context ends."""
        if not settings.serve:
            yield Place(host)
            return
        server = self._server(endpoint(settings.serve))
        only_from = settings.only_from if isinstance(settings, Install) else _only_from(settings)
        url = server.reserve(host, path=settings.path)
        try:
            yield Place(host, url, server, only_from)
        finally:
            server.withdraw(host)

    def _server(self, where: tuple[str, int]) -> SeedServer:
        with self._lock:
            if where not in self._servers:
                self._servers[where] = self._open.enter_context(SeedServer(*where))
            return self._servers[where]


def _only_from(settings: Reinstall) -> str | None:
    return settings.allow_from if settings.allow_from not in ("", "any") else None
