"""A new operating system: the seed is served as long as it is needed, and the host is known by its own key alone."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from hostwright.durations import Clock
from hostwright.errors import HostError, Unreachable
from hostwright.events import Event, Note
from hostwright.fleet import Fleet, Member
from hostwright.identity.keys import HostKey
from hostwright.rebuilding import installing
from hostwright.rebuilding.clock import Phases
from hostwright.rebuilding.installing import Installer
from hostwright.rebuilding.serving import SeedServers
from tests.unit.hostkeys import host_key

OLD, OTHER = host_key(1), host_key(2)
SEEDED = "the key of the seed"


@dataclass
class Bmc:
    """A BMC whose host fetches its seed as soon as it is power cycled, unless its boot order is wrong."""

    fetch: Callable[[], None]
    orders: list[str] = field(default_factory=list)

    def __enter__(self) -> Bmc:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def boot_once(self, source: str, *, image_url: str) -> None:
        self.orders.append(f"boot {source} {image_url}".strip())

    def cycle(self) -> None:
        self.orders.append("cycle")
        self.fetch()

    def boot_from_disk(self) -> None:
        self.orders.append("disk")


class World:
    """The host on its way: what it shows at each look, what it fetched, and which keys were written down."""

    def __init__(self, member: Member, monkeypatch: pytest.MonkeyPatch, shows: list[HostKey | str | None]):
        self.member, self.shows = member, shows
        self.events: list[Event] = []
        self.fetched: dict[str, bytes] = {}
        self.seeded: HostKey | None = None
        self.written: list[list[HostKey]] = []
        self.now_s = 0.0
        self.port = 0
        self.bmc = Bmc(self.fetch)
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
            def close(self) -> None:
                """Nothing to close."""

        monkeypatch.setattr(installing, "generate", generate)
        monkeypatch.setattr(installing, "offered", self.offered)
        monkeypatch.setattr(installing, "known", lambda *_: (Entry(OLD.blob),))
        monkeypatch.setattr(installing, "replace", replace)
        monkeypatch.setattr(installing.rebooting, "await_boot", lambda *_, **__: Back())

    def offered(self, *_: object) -> HostKey:
        shown = self.shows.pop(0) if len(self.shows) > 1 else self.shows[0]
        if shown is None:
            raise Unreachable("gpu07", "nothing answers", passing=True)
        return self.seeded if shown == SEEDED else shown  # type: ignore[return-value]

    def fetch(self, path: str = "gpu07") -> None:
        for name in ("preseed.cfg", "ssh_host_ed25519_key"):
            answer = requests.get(self.url(name, path), timeout=10)
            if answer.ok:
                self.fetched[name] = answer.content

    def url(self, name: str, path: str = "gpu07") -> str:
        return f"http://127.0.0.1:{self.port}/{path}/{name}"

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        time.sleep(0.001)  # the server's threads need a moment of the real time

    def install(self, *, stopping: bool = False, bmc: bool = True) -> None:
        with SeedServers() as servers:
            installer = Installer(
                self.member, lambda: None, (lambda: self.bmc) if bmc else None, servers, "run-1",  # type: ignore[arg-type, return-value]
                self.events.append, lambda: stopping, Clock(lambda: self.now_s, self.sleep, lambda: "10:00"),
            )  # fmt: skip
            try:
                installer("disk replaced", Phases(), lambda: None)
            finally:
                assert not self.served()

    def served(self) -> bool:
        """Whether the seed can be fetched."""
        try:
            return requests.get(self.url("preseed.cfg"), timeout=10).ok
        except requests.ConnectionError:
            return False

    @property
    def notes(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, Note))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def make(shows: list[HostKey | str | None], settings: str = "") -> World:
        install = settings or (
            f"hostwright_install: {{serve: '127.0.0.1:{port}', path: gpu07, allow_from: any, os: debian, "
            f"release: '11', disk: /dev/sda, user: ops, ssh_keys: ['{OTHER.line}'], timeout: 600}}"
        )
        (tmp_path / "hosts.yml").write_text(f"all: {{hosts: {{gpu07: {{{install}}}}}}}".replace("PORT", str(port)))
        made = World(Fleet.load(tmp_path / "hosts.yml").members("gpu07")[0], monkeypatch, shows)
        made.port = port
        return made

    return make


def test_the_host_gets_a_key_that_is_known_before_it_answers(world):
    one = world([None, None, SEEDED])
    one.install()
    assert one.bmc.orders == ["boot network", "cycle", "disk"]
    assert one.written == [[one.seeded]]
    assert b"PRIVATE KEY" in one.fetched["ssh_host_ed25519_key"]
    assert "PRIVATE" not in repr(one.events)


def test_the_installers_own_key_is_waited_out(world):
    one = world([None, OTHER, OTHER, None, SEEDED])
    one.install()
    assert one.written == [[one.seeded]]


@pytest.mark.parametrize(
    ("shows", "said"), [(OLD, "it showed its old key"), (OTHER, "an unknown key"), (None, "nothing of it")]
)
def test_an_installation_that_does_not_end_leaves_the_known_key_as_it_is(world, shows, said):
    one = world([shows])
    with pytest.raises(HostError, match=f"did not end within .* s; last seen: .*{said}"):
        one.install()
    assert one.written == []
    assert one.bmc.orders == ["boot network", "cycle"]


def test_the_wait_for_the_installer_is_part_of_the_time_that_an_installation_has(world):
    one = world([None])
    one.bmc.fetch, sleep = lambda: None, one.sleep

    def fetches_late(seconds: float) -> None:
        sleep(seconds)
        if one.now_s == 100:
            one.fetch()

    one.sleep = fetches_late
    with pytest.raises(HostError, match="did not end within 600 s"):
        one.install()
    assert one.now_s == 600


def test_an_installer_that_never_asks_for_its_seed_is_told_from_one_that_never_ends(world):
    one = world([None])
    one.bmc.fetch = lambda: None
    with pytest.raises(HostError, match="did not ask for its seed within 600 s of the power cycle"):
        one.install()
    assert one.written == []


def test_a_host_without_bmc_is_not_installed(world):
    with pytest.raises(HostError, match="names no BMC"):
        world([None]).install(bmc=False)


def test_an_operator_may_stop_the_wait(world):
    one = world([None])
    with pytest.raises(HostError, match="stopped by the operator"):
        one.install(stopping=True)


OWN = "hostwright_reinstall: {{command: 'echo \"$HOSTWRIGHT_HOST $HOSTWRIGHT_REASON\" >{place}; {then}', {more}}}"


def test_a_sites_own_command_may_give_the_new_system_its_key(world, tmp_path: Path):
    settings = OWN.format(
        place=tmp_path / "said",
        then="true",
        more="serve: '127.0.0.1:PORT', path: gpu07, allow_from: any, host_keys: given",
    )
    one = world([OLD, None, SEEDED], settings)
    one.install(bmc=False)
    assert one.written == [[one.seeded]]
    assert (tmp_path / "said").read_text() == "gpu07 disk replaced\n"


def test_a_sites_own_command_that_fails_says_so(world, tmp_path: Path):
    one = world([OLD], OWN.format(place=tmp_path / "said", then="echo no quota; exit 4", more="timeout: 60"))
    with pytest.raises(HostError, match="hostwright_reinstall ended with status 4: no quota"):
        one.install(bmc=False)
    assert one.written == []


def test_the_key_of_a_sites_own_system_comes_from_its_console(world, tmp_path: Path):
    console = f"hostwright_host_keys: 'echo {OTHER.line}', "
    settings = console + OWN.format(place=tmp_path / "said", then="true", more="timeout: 60")
    one = world([OLD, OLD, None, OTHER], settings)
    one.install(bmc=False)
    assert one.written == [[OTHER]]


def test_without_a_console_nobody_vouches_for_the_new_system(world, tmp_path: Path):
    one = world([OLD, None, OTHER], OWN.format(place=tmp_path / "said", then="true", more="timeout: 60"))
    with pytest.raises(HostError, match="nothing says that this is right: give hostwright_host_keys"):
        one.install(bmc=False)
    assert one.written == []


def test_it_is_told_what_the_installer_is_to_be_given(world):
    one = world([None, SEEDED])
    one.install()
    assert f"url=http://127.0.0.1:{one.port}/gpu07/preseed.cfg" in one.notes
