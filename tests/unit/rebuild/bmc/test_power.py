"""``invoke power``: orders to the BMCs of hosts, and the hosts that must not be disturbed."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.journal.reading import Runs
from hostwright.cli.tasks.restore import power
from hostwright.common.errors import InputError, Locked, Refused, Unreachable
from hostwright.common.operator import machine_id, operator
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.fleet import TargetHost
from hostwright.plan.host.jobs import RUNNING
from hostwright.plan.host.locks import LOCK, RUN_LOCK, Holder, OperatorLock
from hostwright.plan.host.occupancy import standard_occupancies
from hostwright.plan.model import Answer, Facts
from hostwright.rebuild import orders
from hostwright.standard.roles.container.running import CONTAINERS
from hostwright.standard.roles.driver.states.gpu_use import GPU_CONTAINERS, HOLDERS
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from tests.unit.support.redfish import PASSWORD, RESET, USER, Machine, redfish, refusal

#: a database without a GPU that nothing starts again, and a proxy that Docker starts
DATABASE = f"spared false\nboots\n900 {'d' * 64} /db no\n"
PROXY = f"spared false\nboots\n901 {'e' * 64} /proxy unless-stopped\n"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@dataclass
class Site:
    """Two hosts with a BMC each, of which nobody answers over SSH, and one without a BMC."""

    folder: Path
    machines: dict[str, Machine] = field(default_factory=lambda: {"gpu01": Machine(), "gpu02": Machine()})

    def power(self, order: str, hosts: str = "gpu01", **options: Any) -> int:
        """``invoke power``."""
        own = {name: options.pop(name) for name in ("boot", "image") if name in options}
        return power(Request(hosts, inventory=(str(self.folder),), **{"yes": True, **options}), order, **own)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    found = Site(tmp_path)
    with (
        redfish(found.machines["gpu01"]) as first,
        redfish(found.machines["gpu02"]) as second,
        socket.socket() as closed,
    ):
        closed.bind(("127.0.0.1", 0))
        (tmp_path / "hosts.yml").write_text(
            f"""
all:
  vars:
    ansible_host: 127.0.0.1
    ansible_port: {closed.getsockname()[1]}
    hostwright_bmc_insecure: true
    hostwright_bmc_user: {USER}
    hostwright_bmc_password: "{PASSWORD}"
    hostwright_bmc_console: ssh bmc, then console com2
  hosts:
    gpu01: {{hostwright_bmc: "{first}"}}
    gpu02: {{hostwright_bmc: "{second}"}}
    gpu03:
"""
        )
        yield found


def answers(**changed: str) -> Facts:
    """A host that nobody has locked and nobody uses, unless a test says otherwise."""
    probes = {
        "lock": LOCK,
        "run": RUN_LOCK,
        "jobs": RUNNING,
        "holders": HOLDERS,
        "containers": GPU_CONTAINERS,
        "docker": CONTAINERS,
    }
    probes |= {probe.script: probe for probe in standard_occupancies().probes if probe not in probes.values()}
    return Facts({probe: Answer(0, changed.get(name, "")) for name, probe in probes.items()})


def refuse(facts: Facts, order: str) -> None:
    orders.refuse("gpu01", facts, standard_occupancies().at_work(facts, boots=order == "cycle"), order, NOW)


def locked_by(owner: str) -> str:
    lock = OperatorLock(owner, "RMA", "gpu01", NOW - timedelta(hours=1), NOW + timedelta(hours=1))
    return f"there\n{lock.to_json()}\n"


def run_of(machine: str) -> str:
    held = Holder("eve@login2", "20261121-1100-ab12", "gpu01", machine, 4711, "99", NOW)
    return f"heard 1\n{held.to_json()}\n"


def test_the_status_changes_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.power("status", "gpu01,gpu02") == 0
    said = capsys.readouterr().out
    assert "PowerEdge R750xa" in said
    assert "without TLS: its password can be read in transit" in said
    assert PASSWORD not in said
    assert site.machines["gpu01"].orders == site.machines["gpu02"].orders == []


def test_every_host_gets_its_own_order(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.machines["gpu01"].power = "Off"
    assert site.power("on", "gpu01,gpu02", json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["host"], row["before"], row["power"]) for row in document["hosts"]] == [
        ("gpu01", "off", "on"),
        ("gpu02", "on", "on"),
    ]
    assert document["errors"] == []
    assert site.machines["gpu01"].orders == [{"ResetType": "On"}]
    assert site.machines["gpu02"].orders == []
    assert "if the host does not answer: `invoke power cycle`" in document["hosts"][1]["notes"][-1]


def test_who_switched_a_host_is_in_the_records(site: Site, tmp_path: Path) -> None:
    assert site.power("off", "gpu01") == 0
    site.machines["gpu02"].power = "Off"
    assert site.power("off", "gpu02") == 0
    assert site.power("status", "gpu01,gpu02") == 0
    runs = [(one.header.verb, one.header.hosts, one.results) for one in Runs(state_root()).list()]
    assert runs == [("power", ("gpu02",), {"as desired": 1}), ("power", ("gpu01",), {"changed": 1})]
    assert PASSWORD not in "".join(file.read_text() for file in (tmp_path / "state").rglob("*.jsonl"))


def test_a_host_that_does_not_answer_is_not_protected(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.power("off") == 0
    said = capsys.readouterr().out
    assert "its users were not checked, because it does not answer: 127.0.0.1:" in said
    assert "console" not in said
    assert site.machines["gpu01"].orders == [{"ResetType": "GracefulShutdown"}]


def test_force_cuts_the_power_and_asks_nobody(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> Any:
        raise AssertionError("it was looked at")

    monkeypatch.setattr(TargetHost, "connect", connect)
    assert site.power("off", force=True) == 0
    assert site.machines["gpu01"].orders == [{"ResetType": "ForceOff"}]


@pytest.mark.parametrize("order", ["off", "cycle"])
def test_the_machine_that_hostwright_runs_on_is_not_switched_off(
    site: Site, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    path = site.folder / "hosts.yml"
    path.write_text(path.read_text().replace("ansible_host:", "ansible_connection: local\n    ansible_host:"))
    assert site.power(order, force=True) == 1
    assert f"Hostwright runs on this host: `power {order}` would end this run" in capsys.readouterr().err
    assert site.machines["gpu01"].orders == []
    assert site.power("status") == 0


@pytest.mark.parametrize("order", ["off", "cycle"])
@pytest.mark.parametrize(
    "error",
    [HostKeyMismatch("gpu01", "the host key changed"), Unreachable("gpu01", "no key was taken")],
)
def test_a_host_that_answers_and_cannot_be_asked_is_left_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], order: str, error: Unreachable
) -> None:
    def connect(*_: object) -> Any:
        raise error

    monkeypatch.setattr(TargetHost, "connect", connect)
    assert site.power(order, json=True) == 1
    (told,) = json.loads(capsys.readouterr().out)["errors"]
    assert told["kind"] == "Refused"
    assert f"cannot check whether the host is in use: {error.sentence}; to" in told["sentence"]
    assert site.machines["gpu01"].asked == []


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"lock": locked_by("eve@login2")}, Locked, "locked by eve@login2 .* The lock is not yours"),
        ({"lock": "there\nnonsense\n"}, Locked, "its lock file .* cannot be read"),
        ({"run": run_of("another machine")}, Locked, r"in use by eve@login2 .* or pass --force"),
        (
            {"jobs": "20261121t1100-driver {}\n"},
            Refused,
            r"job from an earlier run is still running .*-driver\); wait .* --force",
        ),
        ({"holders": "4711 - python3\n"}, Refused, r"in use by python3 \(4711\); wait .* --force to restart the host"),
        (
            {"holders": "".join(f"{pid} - python3\n" for pid in range(10, 17))},
            Refused,
            r"python3 \(14\) and 2 more",
        ),
        ({"containers": "812 3f2a1b2c3d4e 812 - train\n"}, Refused, "container 3f2a1b2c3d4e"),
        ({"docker": DATABASE}, Refused, rf"the host is in use by container {'d' * 12} \(pid 900\) db; wait"),
        ({"docker": "unlisted\n"}, Refused, "in use by containers that Docker did not name in time"),
    ],
)
def test_work_and_locks_of_others_are_not_disturbed(changed: dict[str, str], error: type, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        refuse(answers(**changed), "cycle")


def test_a_container_that_docker_starts_again_is_noted_by_a_cycle_and_holds_up_what_stays_off(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(TargetHost, "connect", lambda *_: nullcontext(SimpleNamespace(close=lambda: None)))
    monkeypatch.setattr(orders.usage, "probe_usage", lambda *_: answers(docker=PROXY))
    assert site.power("off") == 1
    capsys.readouterr()
    assert site.power("cycle", json=True) == 0
    said = capsys.readouterr()
    assert "gpu01: the reboot ends container" in said.err  # before the order; what came of it is read afterwards
    document = json.loads(said.out)
    (note,) = [note for note in document["hosts"][0]["notes"] if "container" in note]
    assert note.endswith("proxy; Docker starts it again (restart policy unless-stopped)")


@pytest.mark.parametrize(
    ("changed", "given"), [({"holders": "4711 - python3\n"}, []), ({}, [{"ResetType": "ForceRestart"}])]
)
def test_a_host_that_answers_is_looked_at_first(
    site: Site, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], given: list[Any]
) -> None:
    monkeypatch.setattr(TargetHost, "connect", lambda *_: nullcontext(SimpleNamespace(close=lambda: None)))
    monkeypatch.setattr(orders.usage, "probe_usage", lambda *_: answers(**changed))
    assert site.power("cycle") == (0 if given else 1)
    assert site.machines["gpu01"].orders == given


def test_own_locks_and_dead_runs_do_not_block() -> None:
    refuse(answers(), "off")
    refuse(answers(lock=locked_by(operator())), "off")
    refuse(answers(run=run_of(machine_id())), "off")  # no such process here
    refuse(answers(holders="77 nvidia-persistenced.service nvidia-persiste\n"), "off")


def test_an_unknown_order_and_a_host_without_a_bmc_touch_nobody(site: Site) -> None:
    with pytest.raises(InputError, match=r"unknown order 'offf'; did you mean 'off'\?"):
        site.power("offf")
    with pytest.raises(InputError, match="gpu03 has no BMC in the inventory: set hostwright_bmc"):
        site.power("off", "all")
    assert site.machines["gpu01"].asked == []


IMAGE = "https://images.example/rescue.iso"


def test_a_host_boots_once_from_the_network_or_from_an_image(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = site.machines["gpu01"], site.machines["gpu02"]
    first.power = "Off"
    assert site.power("on", "gpu01", boot="network") == 0
    assert (first.orders[-1], first.boot["BootSourceOverrideTarget"]) == ({"ResetType": "On"}, "Pxe")
    assert "it boots once from the network" in capsys.readouterr().out
    assert site.power("cycle", "gpu02", boot="media", image=IMAGE) == 0
    assert (second.image, second.boot["BootSourceOverrideTarget"]) == (IMAGE, "Cd")
    assert "invoke power cycle --boot disk --hosts gpu02` removes it" in capsys.readouterr().out
    assert site.power("cycle", "gpu02", boot="disk") == 0
    assert (second.image, second.boot["BootSourceOverrideEnabled"]) == (None, "Disabled")
    assert second.count("POST", RESET) == 2


def test_running_host_gets_no_next_boot_setting(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.power("on", "gpu01", boot="network") == 1
    assert "run `invoke power cycle --boot network --hosts gpu01`" in " ".join(capsys.readouterr().err.split())
    assert site.machines["gpu01"].boot["BootSourceOverrideEnabled"] == "Disabled"


def test_an_order_that_fails_leaves_nothing_to_boot_from(site: Site) -> None:
    machine = site.machines["gpu01"]
    machine.overrides["POST", RESET] = lambda *_: refusal(500, "not now")
    assert site.power("cycle", "gpu01", boot="media", image=IMAGE) == 1
    assert (machine.image, machine.boot["BootSourceOverrideEnabled"]) == (None, "Disabled")


@pytest.mark.parametrize(
    ("order", "options", "sentence"),
    [
        ("cycle", {"boot": "floppy"}, "found 'floppy', expected one of network, media, disk"),
        ("off", {"boot": "network"}, "applies only to on and cycle"),
        ("status", {"boot": "network"}, "applies only to on and cycle"),
        ("cycle", {"boot": "media"}, "--boot media needs --image URL"),
        ("cycle", {"image": IMAGE}, "--boot media needs --image URL"),
        ("cycle", {"boot": "network", "image": IMAGE}, "--boot media needs --image URL"),
    ],
)
def test_what_cannot_be_booted_from_is_refused_before_anything(
    site: Site, order: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        site.power(order, "gpu01", **options)
    assert site.machines["gpu01"].asked == []


def test_one_bmc_that_fails_does_not_keep_the_others(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.machines["gpu01"].systems = ()
    assert site.power("status", "gpu01,gpu02") == 1
    told = capsys.readouterr()
    assert "gpu02" in told.out
    assert "gpu01: the BMC at http://127.0.0.1" in told.err
