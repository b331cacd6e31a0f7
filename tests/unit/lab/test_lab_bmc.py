"""The lab's BMCs without a lab: what they remember, whom they let in, what they do."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sushy_tools import error
from werkzeug.test import Client
from werkzeug.wrappers import Response

from hostwright.common.errors import LabError
from hostwright.common.secret import Secret
from lab import inventory
from lab.bmc import boot, power
from lab.bmc.access import SESSIONS, Door
from lab.bmc.credentials import Credentials
from lab.bmc.faults import Faults, read_faults, set_faults
from lab.bmc.settings import ENABLED, TARGETS, Media, Settings, read_settings, write_settings
from lab.config import HostOptions, Lab, Machine
from lab.records import HostRecord, read_records, write_record


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab("made", 3, root=tmp_path)
    made.bmc.mkdir(parents=True)
    return made


def record(lab: Lab, name: str, index: int, **changes: Any) -> None:
    directory = lab.state / "hosts" / name
    directory.mkdir(parents=True)
    key = f"ssh-ed25519 AAAAof{name} root@{name}\n"
    write_record(directory, replace(HostRecord(name, index, "base", key, HostOptions().to_json()), **changes))


@given(
    st.builds(
        Settings,
        target=st.sampled_from(TARGETS),
        enabled=st.sampled_from(ENABLED),
        cd=st.builds(Media, image=st.text(), inserted=st.booleans()),
    )
)
def test_what_is_for_once_never_starts_an_installer_twice(settings: Settings) -> None:
    twice = settings.boots_installer() and settings.after_boot().boots_installer()
    assert twice == (settings.boots_installer() and settings.enabled == "Continuous")


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}, Settings("Pxe", "Once")),
        ({"BootSourceOverrideTarget": "Pxe"}, Settings("Pxe", "Once")),
        ({"BootSourceOverrideTarget": "None"}, Settings()),
        ({"BootSourceOverrideEnabled": "Disabled"}, Settings()),
        (
            {"BootSourceOverrideTarget": "UefiHttp", "HttpBootUri": "http://x/grub.efi"},
            Settings("UefiHttp", "Once", http_uri="http://x/grub.efi"),
        ),
    ],
)
def test_a_boot_override_is_taken_as_the_specification_has_it(asked: dict[str, Any], wanted: Settings) -> None:
    assert boot.changed(Settings(), {"Boot": asked}) == wanted


@pytest.mark.parametrize(
    "asked",
    [None, [], {}, {"Boot": {}}, {"Boot": {"BootSourceOverrideTarget": "Floppy"}}, {"Boot": {"Other": 1}},
     {"Boot": {"BootSourceOverrideTarget": ["Pxe"]}}, {"Boot": {"HttpBootUri": 1}}, {"AssetTag": "x"}],
)  # fmt: skip
def test_an_override_that_no_host_has_is_refused(asked: Any) -> None:
    with pytest.raises(error.BadRequest):
        boot.changed(Settings(), asked)


@pytest.fixture
def door() -> Client:
    known = Credentials("operator", Secret("right"), Path("/nowhere"), Path("/nowhere"))
    return Client(Door(Response("behind"), known))


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/redfish/v1/", {}, 200),
        ("/redfish/v1/Systems", {}, 401),
        ("/redfish/v1/Systems", basic("operator", "right"), 200),
        ("/redfish/v1/Systems", basic("operator", "wrong"), 401),
        ("/redfish/v1/Systems", basic("admin", "right"), 401),
        ("/redfish/v1/Systems", {"Authorization": "Basic %%%"}, 401),
        ("/redfish/v1/Systems", {"Authorization": "Bearer right"}, 401),
        ("/redfish/v1/Systems", {"X-Auth-Token": ""}, 401),
        ("/redfish/v1/Systems", {"X-Auth-Token": "guess", **basic("operator", "right")}, 401),
        ("/redfish/v1//Systems", {}, 401),
        (SESSIONS, {}, 401),
    ],
)
def test_everything_but_the_service_root_needs_credentials(
    door: Client, path: str, headers: dict[str, str], status: int
) -> None:
    assert door.get(path, headers=headers).status_code == status


def test_a_session_opens_the_door_until_it_is_ended(door: Client) -> None:
    made = door.post(SESSIONS, json={"UserName": "operator", "Password": "right"})
    assert made.status_code == 201
    token = {"X-Auth-Token": made.headers["X-Auth-Token"]}
    assert door.get("/redfish/v1/Systems", headers=token).status_code == 200
    assert door.get(made.headers["Location"], headers=token).status_code == 200
    assert door.delete(made.headers["Location"], headers=token).status_code == 204
    assert door.get("/redfish/v1/Systems", headers=token).status_code == 401


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"UserName": "operator"}', '{"UserName": 1, "Password": 2}'])
def test_a_session_needs_the_right_words(door: Client, body: str) -> None:
    assert door.post(SESSIONS, data=body).status_code in (400, 401)
    assert door.post(SESSIONS, json={"UserName": "operator", "Password": "wrong"}).status_code == 401
    assert door.post(SESSIONS, data="x" * 100_000).status_code == 413


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Which made-up hosts are on; starting and pulling the plug do that and nothing else."""
    on: set[str] = set()
    monkeypatch.setattr(power, "running", lambda machine: machine.name in on)
    monkeypatch.setattr(power, "start", lambda machine: on.add(machine.name))
    monkeypatch.setattr(power, "power_off", lambda machine: on.discard(machine.name))
    return on


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the hosts on which an installer was started; it runs until the plug is pulled."""
    started: list[str] = []

    class Made:
        alive = False

        def __init__(self, machine: Machine, *, seed_timeout_s: float):
            self.name = machine.name

        def start(self) -> None:
            started.append(self.name)
            self.alive = True

        def pull_plug(self) -> None:
            self.alive = False

    monkeypatch.setattr(power, "Installation", Made)
    return started


@pytest.fixture
def hosts(lab: Lab, switches: set[str]) -> power.Hosts:
    record(lab, "gpu01", 1)
    record(lab, "gpu02", 2)
    return power.Hosts(lab)


def test_power_goes_on_and_off_and_on_again(hosts: power.Hosts, switches: set[str]) -> None:
    assert hosts.power("gpu01") == "Off"
    for order, state in (("On", "On"), ("On", "On"), ("ForceRestart", "On"), ("ForceOff", "Off"), ("ForceOff", "Off")):
        hosts.reset("gpu01", order)
        assert hosts.power("gpu01") == state
    assert hosts.power("gpu02") == "Off"
    with pytest.raises(power.Impossible):
        hosts.reset("gpu01", "ForceRestart")
    with pytest.raises(LabError):
        hosts.power("gpu03")
    with pytest.raises(KeyError):
        hosts.reset("gpu01", "Nmi")


def test_boot_once_starts_the_installer_once(hosts: power.Hosts, switches: set[str], installs: list[str]) -> None:
    write_settings(hosts.lab, "gpu01", Settings("Pxe", "Once"))
    hosts.reset("gpu01", "On")
    assert installs == ["gpu01"]
    assert hosts.power("gpu01") == "On"  # in the installer, with nothing of the host's running
    assert "gpu01" not in switches
    hosts.reset("gpu01", "ForceRestart")
    assert installs == ["gpu01"]
    assert "gpu01" in switches


def test_an_empty_drive_boots_the_disk(hosts: power.Hosts, switches: set[str], installs: list[str]) -> None:
    write_settings(hosts.lab, "gpu01", Settings("Cd", "Once"))
    hosts.reset("gpu01", "On")
    assert (installs, switches) == ([], {"gpu01"})
    assert read_settings(hosts.lab, "gpu01").enabled == "Disabled"


def test_an_order_ends_a_graceful_restart_that_still_waits(
    hosts: power.Hosts, switches: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended, done = threading.Event(), threading.Event(), threading.Event()

    def shut_down(machine: Machine) -> None:
        asked.set()
        assert ended.wait(60)
        switches.discard(machine.name)

    class Watched(threading.Thread):
        def run(self) -> None:
            super().run()
            done.set()

    monkeypatch.setattr(power, "shut_down", shut_down)
    monkeypatch.setattr(power.threading, "Thread", Watched)
    for later, state in ((None, "On"), ("ForceOff", "Off")):
        hosts.reset("gpu01", "On")
        for event in (asked, ended, done):
            event.clear()
        hosts.reset("gpu01", "GracefulRestart")
        assert asked.wait(60)
        if later:
            hosts.reset("gpu01", later)
        ended.set()
        assert done.wait(60)
        assert hosts.power("gpu01") == state


def test_a_lying_bmc_says_on_and_does_nothing(hosts: power.Hosts, switches: set[str]) -> None:
    set_faults(hosts.lab, "gpu01", Faults(lies_on=True))
    for order in ("On", "ForceRestart"):
        hosts.reset("gpu01", order)
    assert hosts.power("gpu01") == "On"
    assert not switches
    set_faults(hosts.lab, "gpu01", Faults())
    assert hosts.power("gpu01") == "Off"


def test_a_broken_power_controller_says_so(hosts: power.Hosts, switches: set[str]) -> None:
    set_faults(hosts.lab, "gpu01", Faults(reset_fails=True))
    with pytest.raises(power.Broken):
        hosts.reset("gpu01", "On")
    assert not switches
    assert read_faults(hosts.lab, "gpu02") == Faults()


@pytest.fixture
def redfish(hosts: power.Hosts) -> Iterator[Client]:
    """The emulator over made-up hosts, without its door."""
    from sushy_tools.emulator import main as emulator

    from lab.bmc.__main__ import build

    kept = {name: vars(emulator.Application)[name] for name in ("systems", "vmedia", "indicators")}
    views = dict(emulator.app.view_functions)
    yield Client(build(hosts))
    emulator.app.view_functions.update(views)
    for name, value in kept.items():
        setattr(emulator.Application, name, value)


SYSTEM = "/redfish/v1/Systems/gpu01"


def test_bmc_system_is_labelled_stand_in_and_shows_its_next_boot(redfish: Client) -> None:
    assert redfish.patch(SYSTEM, json={"Boot": {"BootSourceOverrideTarget": "Pxe"}}).status_code == 204
    shown: Any = redfish.get(SYSTEM).json
    assert (shown["PowerState"], shown["Boot"]["BootSourceOverrideEnabled"]) == ("Off", "Once")
    assert "stand-in" in shown["Model"]


@pytest.mark.parametrize(
    ("order", "status", "after"),
    [("On", 204, "On"), ("ForceRestart", 409, "Off"), ("PushPowerButton", 400, "Off"), (None, 400, "Off")],
)
def test_orders_that_do_not_fit_are_refused(redfish: Client, order: Any, status: int, after: str) -> None:
    answer = redfish.post(f"{SYSTEM}/Actions/ComputerSystem.Reset", json={"ResetType": order})
    assert answer.status_code == status
    assert redfish.get(SYSTEM).json["PowerState"] == after  # type: ignore[index]


def test_an_image_is_inserted_by_its_address_and_fetched_by_nobody(redfish: Client) -> None:
    drive = f"{SYSTEM}/VirtualMedia/Cd"
    insert, eject = (f"{drive}/Actions/VirtualMedia.{verb}Media" for verb in ("Insert", "Eject"))
    image = {"Image": "http://192.0.2.1/installer.iso"}  # nobody answers there (RFC 5737)
    assert redfish.post(insert, json={"Image": "file:///etc/shadow"}).status_code == 400
    assert redfish.post(insert, json=image).status_code == 204
    assert redfish.post(insert, json=image).status_code == 409
    shown: Any = redfish.get(drive).json
    assert (shown["Inserted"], shown["Image"]) == (True, image["Image"])
    for _ in range(2):
        assert redfish.post(eject, json={}).status_code == 204
    assert redfish.get(drive).json["Inserted"] is False  # type: ignore[index]


def test_the_lab_vouches_only_for_keys_that_it_made(lab: Lab) -> None:
    record(lab, "gpu01", 1)
    record(lab, "gpu02", 2, seeded=True)
    records = read_records(lab)
    address = Machine(lab, "gpu02", 2).address
    trusted = f"{address},gpu02 ssh-ed25519 AAAAtrusted"
    revoked = "@revoked gpu02 ssh-ed25519 AAAAold"
    lines = inventory.known_hosts(lab, records, [trusted, revoked, "gpu01 ssh-ed25519 AAAAstale", "gpu09 x y", ""])
    assert lines == [f"{Machine(lab, 'gpu01', 1).address},gpu01 ssh-ed25519 AAAAofgpu01", trusted, revoked]
