"""A host during the installation of an operating system, with its BMC and installer, for tests of installations."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from hostwright.apply.events import Event, Note
from hostwright.common.durations import Clock
from hostwright.common.errors import HostError, Unreachable
from hostwright.fleet import TargetHost
from hostwright.plan.host.hostfacts import OS_RELEASE
from hostwright.plan.model import Answer, Facts
from hostwright.rebuild.bmc import BmcError
from hostwright.rebuild.host.clock import Phases
from hostwright.rebuild.install import installing
from hostwright.rebuild.install.installing import Installer
from hostwright.rebuild.install.seeds.debian import FETCHED
from hostwright.rebuild.install.serving import SeedServers
from hostwright.transport.identity.keys import HostKey
from tests.unit.support.hostkeys import host_key
from tests.unit.support.runs import run_of

OLD, OTHER, INSTALLERS = host_key(1), host_key(2), host_key(3)
SEEDED = "the key of the seed"
BULLSEYE = 'NAME="Debian GNU/Linux"\nVERSION_ID="11"\nID=debian\n'


@dataclass
class Bmc:
    """A BMC whose host fetches its seed after a power cycle, unless its boot order is wrong."""

    fetch: Callable[[], None]
    orders: list[str] = field(default_factory=list)
    fails: tuple[str, ...] = ()  #: the commands that it rejects

    def __enter__(self) -> Bmc:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def boot_once(self, source: str, *, image_url: str) -> None:
        self._take(f"boot {source} {image_url}".strip())

    def cycle(self) -> None:
        self._take("cycle")
        self.fetch()

    def boot_from_disk(self) -> None:
        self._take("disk")

    def _take(self, order: str) -> None:
        self.orders.append(order)
        if order in self.fails:
            raise BmcError("gpu07", f"its BMC does not do this: {order}")


class World:
    """The host during installation: its responses, the files it fetched, and the keys that were recorded."""

    def __init__(self, target: TargetHost, monkeypatch: pytest.MonkeyPatch, shows: list[HostKey | str | None]):
        self.target, self.shows = target, shows
        self.events: list[Event] = []
        self.fetched: dict[str, bytes] = {}
        self.seeded: HostKey | None = None
        self.written: list[list[HostKey]] = []
        self.rotated: list[HostKey] = []  #: keys of seeds that the host's own keys replaced
        self.cannot_rotate = ""
        self.now_s = 0.0
        self.port = 0
        self.servers: SeedServers | None = None  #: set while an installation runs
        self.system = BULLSEYE  #: /etc/os-release of the installed system
        self.bmc = Bmc(self.fetch)
        self.open_bmc: Callable[[], Bmc] = lambda: self.bmc
        real = installing.generate

        def generate() -> Any:
            pair = real()
            self.seeded = pair.public
            return pair

        @dataclass
        class Entry:
            blob: bytes

        @dataclass
        class Replaced:
            files: tuple[Path, ...] = (Path("known_hosts"),)

        def replace(_host: object, _options: object, keys: list[HostKey]) -> Replaced:
            self.written.append(keys)
            return Replaced()

        class Back:
            def __enter__(self) -> Back:
                return self

            def __exit__(self, *_: object) -> None:
                self.close()

            def close(self) -> None:
                """Nothing to close."""

        def ask(*_: object, **__: object) -> Facts:
            return Facts({OS_RELEASE: Answer(0, self.system)})

        def rotate(_shell: object, _host: object, _options: object, seeded: HostKey, _clock: object) -> HostKey:
            if self.cannot_rotate:
                raise HostError("gpu07", self.cannot_rotate)
            self.rotated.append(seeded)
            return OTHER

        monkeypatch.setattr(installing, "rotate", rotate)
        monkeypatch.setattr(installing, "generate", generate)
        monkeypatch.setattr(installing, "scan_key", self.offered)
        monkeypatch.setattr(installing, "known", lambda *_: (Entry(OLD.blob),))
        monkeypatch.setattr(installing, "replace", replace)
        monkeypatch.setattr(installing, "ask", ask)
        monkeypatch.setattr(installing.rebooting, "await_boot", lambda *_, **__: Back())

    def offered(self, *_: object) -> HostKey:
        shown = self.shows.pop(0) if len(self.shows) > 1 else self.shows[0]
        if shown is None:
            raise Unreachable("gpu07", "nothing answers", passing=True)
        return self.seeded if shown == SEEDED else shown  # type: ignore[return-value]

    def fetch(self, *names: str) -> None:
        for name in names or ("preseed.cfg", *FETCHED):
            answer = requests.get(self.url(name), timeout=60)
            if answer.ok:
                self.fetched[name] = answer.content
                self._await_record(name)

    def _await_record(self, name: str) -> None:
        """Wait until the server, which has real threads, has recorded that a file was fetched."""
        assert self.servers is not None
        ((server, _),) = self.servers._servers.values()
        assert server.wait_fetched("gpu07", 60, name=name)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/gpu07/{name}"

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        time.sleep(0.001)  # the server's threads need real time

    def install(self, *, stopping: Callable[[], bool] = lambda: False, bmc: bool = True) -> None:
        with SeedServers() as servers:
            self.servers = servers
            run = run_of(emit=self.events.append, verb="rebuild")
            run.stopping = SimpleNamespace(is_set=stopping)  # type: ignore[assignment]
            clock = Clock(lambda: self.now_s, self.sleep, lambda: "10:00")
            installer = Installer(run, self.target, self.open_bmc if bmc else None, servers, clock)  # type: ignore[arg-type]
            try:
                installer("disk replaced", Phases(), lambda: None)
            finally:
                assert not self.served()

    def finish(self) -> None:
        """Do what a later run does for a host whose installation was interrupted."""
        with SeedServers() as servers:
            clock = Clock(lambda: self.now_s, self.sleep, lambda: "10:00")
            run = run_of(nullcontext, self.events.append, verb="rebuild")
            Installer(run, self.target, None, servers, clock).finish()

    def served(self) -> bool:
        """Whether the seed can be fetched."""
        try:
            return requests.get(self.url("preseed.cfg"), timeout=60).ok
        except requests.ConnectionError:
            return False

    @property
    def notes(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, Note))
