"""A new operating system: the seed is served as long as it is needed, and the host is known by its own key alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hostwright.common.errors import HostError
from hostwright.fleet import Fleet
from hostwright.rebuild.bmc import BmcError
from hostwright.rebuild.install import installing, pending
from hostwright.rebuild.install.seeds.debian import FETCHED
from hostwright.transport.identity.keys import HostKey
from tests.lab.sshd import free_port
from tests.unit.support.installations import INSTALLERS, OLD, OTHER, SEEDED, Bmc, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    port = free_port()

    def make(shows: list[HostKey | str | None], settings: str = "") -> World:
        install = settings or (
            f"hostwright_install: {{serve: '127.0.0.1:{port}', path: gpu07, allow_from: any, os: debian, "
            f"release: '11', disk: /dev/sda, user: ops, ssh_keys: ['{OTHER.line}'], timeout: 600}}"
        )
        (tmp_path / "hosts.yml").write_text(f"all: {{hosts: {{gpu07: {{{install}}}}}}}".replace("PORT", str(port)))
        made = World(Fleet.load(tmp_path / "hosts.yml").targets("gpu07")[0], monkeypatch, shows)
        made.port = port
        return made

    return make


def test_the_host_gets_a_key_that_is_known_before_it_answers(world):
    installation = world([None, None, SEEDED])
    installation.install()
    assert installation.bmc.orders == ["boot network", "cycle", "disk"]
    assert installation.written == [[installation.seeded]]
    assert b"PRIVATE KEY" in installation.fetched["ssh_host_ed25519_key"]
    assert "PRIVATE" not in repr(installation.events)


def test_the_key_of_the_seed_gives_way_at_the_first_login(world):
    installation = world([None, SEEDED])
    installation.install()
    assert installation.rotated == [installation.seeded]
    assert f"the host generated the host key {OTHER}" in installation.notes
    assert "its seed goes over plain HTTP" in installation.notes


def test_a_host_that_cannot_make_a_key_of_its_own_is_installed_and_said(world):
    installation = world([None, SEEDED])
    installation.cannot_rotate = "no space"
    installation.install()
    assert "the host still uses the host key from its seed: no space" in installation.notes


@pytest.mark.parametrize("still", [True, False], ids=["it still has the seed's key", "it has another one by now"])
def test_what_was_cut_short_is_finished_by_the_next_rebuild(world, monkeypatch, tmp_path, still):
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    installation = world([None, SEEDED])
    installation.cannot_rotate = "killed"
    installation.install()
    assert pending.recall("gpu07") == installation.seeded
    installation.cannot_rotate = ""
    blob = installation.seeded.blob if still else OTHER.blob
    monkeypatch.setattr(installing, "known", lambda *_: (SimpleNamespace(blob=OLD.blob), SimpleNamespace(blob=blob)))
    installation.finish()
    assert installation.rotated == ([installation.seeded] if still else [])
    assert pending.recall("gpu07") is None
    installation.finish()
    assert len(installation.rotated) == int(still)


def test_a_host_with_a_key_of_its_own_has_nothing_to_finish(world, monkeypatch, tmp_path):
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    installation = world([None, SEEDED])
    installation.install()
    assert pending.recall("gpu07") is None
    assert [path for path in (tmp_path / "state").rglob("*") if path.is_file()] == []


def test_the_installers_own_key_is_waited_out(world):
    installation = world([None, OTHER, OTHER, None, SEEDED])
    installation.install()
    assert installation.written == [[installation.seeded]]


@pytest.mark.parametrize(
    ("shows", "sentence"), [(OLD, "it showed its old key"), (OTHER, "an unknown key"), (None, "nothing")]
)
def test_unfinished_installation_keeps_the_known_key(world, shows, sentence):
    installation = world([shows])
    with pytest.raises(HostError, match=f"did not finish within .* min; last seen: .*{sentence}"):
        installation.install()
    assert installation.written == []
    assert installation.bmc.orders == ["boot network", "cycle"]


def test_waiting_for_the_installer_counts_as_installation_time(world):
    installation = world([None])
    installation.bmc.fetch, sleep = lambda: None, installation.sleep

    def fetches_late(seconds: float) -> None:
        sleep(seconds)
        if installation.now_s == 100:
            installation.fetch()

    installation.sleep = fetches_late
    with pytest.raises(HostError, match="did not finish within 10 min"):
        installation.install()
    assert installation.now_s == 600


def test_unrequested_seed_and_endless_installation_are_told_apart(world):
    installation = world([None])
    installation.bmc.fetch = lambda: None
    with pytest.raises(HostError, match="did not fetch its seed within 10 min of the power cycle"):
        installation.install()
    assert installation.written == []
    assert installation.bmc.orders == ["boot network", "cycle", "disk"]  # or a later boot would find the installer


def test_seed_request_after_boot_is_revoked_is_too_late(world):
    installation = world([None])
    installation.bmc.fetch, take_back = lambda: None, installation.bmc.boot_from_disk

    def asks_meanwhile() -> None:
        installation.fetch()
        take_back()

    installation.bmc.boot_from_disk = asks_meanwhile
    with pytest.raises(HostError, match="did not fetch its seed"):
        installation.install()
    assert (installation.bmc.orders[-1], installation.fetched) == ("disk", {})


@pytest.mark.parametrize("order", ["boot network", "cycle"])
@pytest.mark.parametrize("further", [(), ("disk",)])
def test_an_order_that_fails_leaves_no_boot_armed(world, order, further):
    installation = world([None])
    installation.bmc.fails = (order, *further)
    with pytest.raises(HostError, match=f"its BMC does not do this: {order}"):
        installation.install()
    assert installation.bmc.orders[-2:] == [order, "disk"]


def test_a_bmc_that_lets_nobody_in_is_asked_once(world):
    installation, asked = world([None]), []

    def refuse() -> Bmc:
        asked.append("login")
        raise BmcError("gpu07", "it lets nobody in")

    installation.open_bmc = refuse
    with pytest.raises(HostError, match="it lets nobody in"):
        installation.install()
    assert asked == ["login"]


def test_a_host_without_bmc_is_not_installed(world):
    with pytest.raises(HostError, match="has no BMC in the inventory"):
        world([None]).install(bmc=False)


def test_an_operator_may_stop_the_wait_for_the_installer(world):
    installation = world([None])
    installation.bmc.fetch = lambda: None
    with pytest.raises(HostError, match="stopped by the operator before its installer had the seed"):
        installation.install(stopping=lambda: True)
    assert installation.bmc.orders == ["boot network", "cycle", "disk"]


@pytest.mark.parametrize(
    ("fetched", "sentence"),
    [
        (("preseed.cfg", *FETCHED), "its installer has its whole seed and continues by itself"),
        (("preseed.cfg",), "its installer continues by itself and will fail at its end, without .*late"),
    ],
)
def test_an_installer_that_has_its_seed_goes_on_when_the_operator_stops(world, fetched, sentence):
    installation = world([None])
    installation.bmc.fetch = lambda: installation.fetch(*fetched)
    with pytest.raises(HostError, match=f"stopped by the operator: {sentence}"):
        installation.install(stopping=lambda: installation.now_s > 0)
    assert installation.bmc.orders == ["boot network", "cycle"]
    assert installation.written == []


def test_the_installed_system_is_the_one_that_was_asked_for(world):
    installation = world([None, SEEDED])
    installation.system = 'ID=ubuntu\nVERSION_ID="20.04"\n'
    with pytest.raises(HostError, match=r"your PXE installed Ubuntu 20\.04, but hostwright_install names Debian 11: "):
        installation.install()
    assert installation.bmc.orders[-1] == "disk"


@pytest.mark.parametrize(
    ("system", "sentence"),
    [
        ("", "an unidentified system"),
        ("ID=debian\n", "Debian without a release number"),
        ("ID=debian\nVERSION_ID=12\n", "Debian 12"),
        ("ID=\x1b[2Jfedora\nVERSION_ID=40\n", "fedora 40"),
    ],
)
def test_what_else_was_installed_is_said(world, system, sentence):
    installation = world([None, SEEDED])
    installation.system = system
    with pytest.raises(HostError, match=f"your PXE installed .*{sentence}, but") as error:
        installation.install()
    assert "\x1b" not in str(error.value)


OWN = "hostwright_reinstall: {{command: 'echo \"$HOSTWRIGHT_HOST $HOSTWRIGHT_REASON\" >{place}; {then}', {more}}}"


def test_a_sites_own_command_may_give_the_new_system_its_key(world, tmp_path: Path):
    settings = OWN.format(
        place=tmp_path / "said",
        then="true",
        more="serve: '127.0.0.1:PORT', path: gpu07, allow_from: any, host_keys: given",
    )
    installation = world([OLD, None, SEEDED], settings)
    installation.install(bmc=False)
    assert installation.written == [[installation.seeded]]
    assert installation.rotated == [installation.seeded]
    assert (tmp_path / "said").read_text() == "gpu07 disk replaced\n"


FETCH = """
import os, ssl, urllib.request
trusted = ssl.create_default_context(cafile=os.environ["HOSTWRIGHT_SEED_CA"])
key = os.environ["HOSTWRIGHT_SEED"] + "/ssh_host_ed25519_key.pub"
print(urllib.request.urlopen(key, context=trusted).read().decode())
"""


def test_a_sites_own_command_is_told_whom_to_trust(world, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    (tmp_path / "fetch").write_text(FETCH)
    settings = OWN.format(
        place=tmp_path / "said",
        then=f"{sys.executable} {tmp_path}/fetch >{tmp_path}/fetched",
        more="serve: '127.0.0.1:PORT', host_keys: given, https: true",
    )
    installation = world([OLD, None, SEEDED], settings)
    installation.install(bmc=False)
    assert (tmp_path / "fetched").read_text().strip() == installation.seeded.line


def test_a_sites_own_command_that_fails_says_so(world, tmp_path: Path):
    installation = world([OLD], OWN.format(place=tmp_path / "said", then="echo no quota; exit 4", more="timeout: 60"))
    with pytest.raises(HostError, match="hostwright_reinstall ended with status 4: no quota"):
        installation.install(bmc=False)
    assert installation.written == []


def test_the_key_of_a_sites_own_system_comes_from_its_console(world, tmp_path: Path):
    console = f"hostwright_host_keys: 'echo {OTHER.line}', "
    settings = console + OWN.format(place=tmp_path / "said", then="true", more="timeout: 60")
    installation = world([OLD, OLD, None, OTHER], settings)
    installation.install(bmc=False)
    assert installation.written == [[OTHER]]
    assert installation.rotated == []  # it made that key itself


def test_returning_old_system_is_not_taken_for_the_new_one(world, tmp_path: Path):
    """It was dead before, and its key is right, as its console says: only nothing new was installed."""
    console = f"hostwright_host_keys: 'echo {OLD.line}', "
    installation = world(
        [None, None, OLD], console + OWN.format(place=tmp_path / "said", then="true", more="timeout: 60")
    )
    with pytest.raises(HostError, match=r"within 60 s; last seen: it showed its old key .* host_keys: given"):
        installation.install(bmc=False)
    assert installation.written == []


def test_an_installers_own_key_is_waited_out_where_the_console_tells(world, tmp_path: Path):
    console = f"hostwright_host_keys: 'echo {OTHER.line}', "
    settings = console + OWN.format(place=tmp_path / "said", then="true", more="timeout: 60")
    installation = world([OLD, None, INSTALLERS, INSTALLERS, None, OTHER], settings)
    installation.install(bmc=False)
    assert installation.written == [[OTHER]]


def test_a_console_that_tells_nothing_yet_is_asked_again(world, tmp_path: Path):
    asked = tmp_path / "asked"
    console = f"hostwright_host_keys: 'echo x >>{asked}; [ $(wc -l <{asked}) = 3 ] && echo {OTHER.line}', "
    settings = console + OWN.format(place=tmp_path / "said", then="true", more="timeout: 60")
    installation = world([OLD, None, OTHER], settings)
    installation.install(bmc=False)
    assert installation.written == [[OTHER]]
    assert installation.now_s > 0


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("echo no such host; exit 1", "the command of hostwright_host_keys ended with status 1: no such host"),
        (f"echo {OTHER.line}", f"it showed an unknown key {INSTALLERS}, and its console shows {OTHER}"),
    ],
)
def test_what_the_console_said_last_is_told_when_the_time_is_over(world, tmp_path: Path, command, sentence):
    console = f"hostwright_host_keys: '{command}', "
    settings = console + OWN.format(place=tmp_path / "said", then="true", more="timeout: 20")
    installation = world([OLD, None, INSTALLERS], settings)
    with pytest.raises(HostError) as error:
        installation.install(bmc=False)
    assert f"did not finish within 20 s; last seen: {sentence}" in str(error.value)
    assert "Nothing was changed" not in str(error.value)
    assert installation.written == []


def test_without_a_console_nobody_vouches_for_the_new_system(world, tmp_path: Path):
    installation = world([OLD, None, OTHER], OWN.format(place=tmp_path / "said", then="true", more="timeout: 60"))
    with pytest.raises(HostError, match="nothing confirms that key: set hostwright_host_keys"):
        installation.install(bmc=False)
    assert installation.written == []


def test_the_notes_show_the_address_of_the_seed(world):
    installation = world([None, SEEDED])
    installation.install()
    assert f"url=http://127.0.0.1:{installation.port}/gpu07/preseed.cfg" in installation.notes
