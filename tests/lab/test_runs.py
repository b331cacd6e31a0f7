"""Runs over hosts of which one is unreachable: records, selections, resumption, failure budget, canary."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from lab.config import Lab, Machine
from tests.lab.conftest import FrontDoor, on


@pytest.fixture
def inventory(lab: Lab, tmp_path: Path) -> Path:
    """The lab's inventory with an unreachable host before the others."""
    copy = tmp_path / "inventory"
    shutil.copytree(lab.inventory.parent, copy)
    data = yaml.safe_load((copy / "lab.yml").read_text())
    address = str(lab.subnet.network_address + 900)
    data["lab"]["hosts"] = {
        "dead01": {"ansible_host": address, "hostwright_connect_timeout": 2},
        **data["lab"]["hosts"],
    }
    (copy / "lab.yml").write_text(yaml.safe_dump(data, sort_keys=False))
    return copy


def run(door: FrontDoor, inventory: Path, status: int, *words: str) -> dict:
    done = door(*words, "--json", inventory=str(inventory), HOSTWRIGHT_STATE=str(inventory.parent / "state"))
    assert done.returncode == status, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout) if done.stdout else {}


def test_what_a_run_left_is_selected_and_resumed(provisioned: FrontDoor, inventory: Path, gpu01: Machine):
    on(gpu01, "rm /etc/profile.d/cuda.sh")
    first = run(provisioned, inventory, 1, "provision", "--hosts", "dead01,gpu01,gpu02")
    assert {host["host"]: host["result"] for host in first["hosts"]} == {"gpu01": "changed", "gpu02": "as desired"}
    assert [(error["host"], error["kind"]) for error in first["errors"]] == [("dead01", "Unreachable")]

    for selection, names in (("@unreachable", ["dead01"]), ("@failed", ["dead01"]), ("@changed", ["gpu01"])):
        chosen = run(provisioned, inventory, 0, "hosts", "--hosts", selection)
        assert [one["host"] for one in chosen["hosts"]] == names

    again = run(provisioned, inventory, 1, "provision", "--resume")
    assert [error["host"] for error in again["errors"]] == ["dead01"]
    assert again["hosts"] == []


def test_a_spent_budget_leaves_the_others_untouched_and_lists_them(
    provisioned: FrontDoor, inventory: Path, gpu01: Machine
):
    on(gpu01, "rm /etc/profile.d/cuda.sh")
    words = ("provision", "--hosts", "dead01,gpu01,gpu02", "--batch", "1", "--max-fail", "0")
    stopped = run(provisioned, inventory, 1, *words)
    assert stopped["untouched"] == ["gpu01", "gpu02"]
    assert "too many failures" in stopped["stopped_because"]
    assert "cuda.sh" not in on(gpu01, "ls /etc/profile.d")
    enough = run(provisioned, inventory, 1, *words[:-1], "1")
    assert {host["host"]: host["result"] for host in enough["hosts"]} == {"gpu01": "changed", "gpu02": "as desired"}


def test_a_canary_that_fails_stops_the_run(provisioned: FrontDoor, inventory: Path):
    stopped = run(provisioned, inventory, 1, "provision", "--hosts", "all", "--canary", "1", "--max-fail", "50%")
    assert stopped["untouched"] == ["gpu01", "gpu02"]
    assert "canary" in stopped["stopped_because"]
    chosen = run(provisioned, inventory, 0, "hosts", "--hosts", "@untouched")
    assert [one["host"] for one in chosen["hosts"]] == ["gpu01", "gpu02"]


def test_a_locked_canary_is_left_out_and_a_stopped_rollout_is_resumed_by_its_name(
    provisioned: FrontDoor, inventory: Path, gpu01: Machine
):
    on(gpu01, "rm /etc/profile.d/cuda.sh")
    run(provisioned, inventory, 0, "lock", "--hosts", "gpu01", "--reason", "RMA")
    words = ("provision", "--hosts", "gpu01,gpu02", "--canary", "1", "--max-fail", "0")
    done = run(provisioned, inventory, 3, *words)
    assert [(error["host"], error["kind"]) for error in done["errors"]] == [("gpu01", "Locked")]
    assert [host["host"] for host in done["hosts"]] == ["gpu02"], "it takes the place of the canary"
    run(provisioned, inventory, 0, "unlock", "--hosts", "gpu01")
    repair = run(provisioned, inventory, 0, "provision", "--hosts", "gpu02")
    chosen = run(provisioned, inventory, 0, "hosts", "--hosts", f"@locked:{done['run']}")
    assert [one["host"] for one in chosen["hosts"]] == ["gpu01"]
    again = run(provisioned, inventory, 0, "provision", "--resume", done["run"].rpartition("-")[2])
    assert [(host["host"], host["result"]) for host in again["hosts"]] == [("gpu01", "changed")]
    assert again["run"] != repair["run"]


def test_a_set_of_a_run_that_never_was_is_an_error(provisioned: FrontDoor, inventory: Path):
    run(provisioned, inventory, 2, "hosts", "--hosts", "@failed")
    run(provisioned, inventory, 2, "provision", "--resume")


def test_a_run_can_be_read_step_by_step(provisioned: FrontDoor, inventory: Path, gpu01: Machine):
    on(gpu01, "rm /etc/profile.d/cuda.sh")
    done = run(provisioned, inventory, 0, "provision", "--hosts", "gpu01")
    state = str(inventory.parent / "state")
    shown = provisioned.bare("runs.show", "--run", done["run"], "--steps", "--json", HOSTWRIGHT_STATE=state)
    assert shown.returncode == 0, shown.stderr
    host = json.loads(shown.stdout)["hosts"][0]
    assert host["result"] == "changed"
    assert [(role["role"], role["status"]) for role in host["roles"]] == [("environment", 0)]
    assert all(step["status"] == 0 for step in host["roles"][0]["steps"])
    facts = sorted((inventory.parent / "state" / "runs" / done["run"] / "facts").iterdir())
    assert [path.name for path in facts] == ["gpu01.after.json.gz", "gpu01.before.json.gz"]
    assert {oct(path.stat().st_mode & 0o777) for path in facts} == {"0o600"}


def test_the_record_on_the_host_names_the_run(provisioned: FrontDoor, inventory: Path, gpu01: Machine):
    on(gpu01, "rm -f /var/lib/hostwright/release.json")
    done = run(provisioned, inventory, 0, "provision", "--hosts", "gpu01")
    record = json.loads(on(gpu01, "cat /var/lib/hostwright/release.json"))
    assert record["run"] == done["run"]
    layers = {"base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container"}
    assert set(record["roles"]) == layers
    assert record["artifacts"]["driver"]["stand_in"] is True
    again = run(provisioned, inventory, 0, "provision", "--hosts", "gpu01")
    assert json.loads(on(gpu01, "cat /var/lib/hostwright/release.json"))["run"] == done["run"] != again["run"]
