"""From one stack to another and back, on a host over real SSH: another driver, then another TensorFlow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostwright.plan.host.release import FORMER
from lab import fleet as lab_fleet
from lab.config import Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ownlab import own_lab

pytestmark = pytest.mark.long
HOST = "gpu01"
DRIVER, TENSORFLOW = "lab-470.256", "lab-2.9.3"
VERSIONS = (
    "cat /sys/module/nvidia/version; /opt/tensorflow-2.9/bin/python -c 'import tensorflow as tf; print(tf.__version__)'"
)
BEFORE = ["470.182.03", "2.9.0"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One bare host in a separate lab, because other tests cannot use an upgraded host."""
    with own_lab("upg") as opened:
        lab_fleet.supply(opened, SMALL)
        lab_fleet.up(opened, [HOST], options=SMALL)
        yield opened


@pytest.fixture(scope="module")
def invoke(lab: Lab) -> FrontDoor:
    """``invoke`` on that lab, with the files of all three stacks and the host on the first."""
    door = FrontDoor(lab)
    for stack in ("lab", DRIVER, TENSORFLOW):
        done = door("mirror", "--stack", stack)
        assert done.returncode == 0, done.stderr
    door.json("provision", "--hosts", HOST, status=0)
    return door


@pytest.fixture(scope="module")
def machine(lab: Lab, invoke: FrontDoor) -> Machine:
    return find_machine(lab, HOST)


def versions(machine: Machine) -> list[str]:
    return on(machine, VERSIONS).split()


def planned(document: dict[str, Any]) -> dict[str, list[str]]:
    """Return the planned changes by role."""
    (plan,) = document["plans"]
    return {role["role"]: [change["what"] for change in role["changes"]] for role in plan["roles"]}


def test_a_host_without_a_former_release_is_left_alone(invoke: FrontDoor, machine: Machine) -> None:
    before = on(machine, "ls /var/lib/hostwright/jobs")
    error = invoke.json("rollback", "--hosts", HOST, status=1)["errors"][0]
    assert "no record of another release than lab" in error["sentence"]
    assert on(machine, "ls /var/lib/hostwright/jobs") == before
    assert versions(machine) == BEFORE


def test_another_driver_and_back(invoke: FrontDoor, machine: Machine) -> None:
    choose = ("--hosts", HOST, "--var", f"stack={DRIVER}")
    changes = planned(invoke.json("plan", *choose, status=3))
    assert set(changes) == {"driver"}
    assert "NVIDIA driver" in changes["driver"]
    invoke.json("provision", *choose, status=0)
    assert versions(machine) == ["470.256.02", "2.9.0"]
    invoke.json("verify", *choose, status=0)
    assert [json.loads(line)["stack"] for line in former(machine)] == ["lab"]

    # the previous run had the stack on its command line; the inventory still has lab, so the option is needed here
    back = planned(invoke.json("rollback", *choose, "--check", status=3))
    assert set(back) == {"driver"}
    (host,) = invoke.json("rollback", *choose, status=0)["hosts"]
    assert (host["result"], host["left"]["stack"]) == ("changed", "lab")
    assert versions(machine) == BEFORE
    invoke.json("verify", "--hosts", HOST, status=0)
    assert record(machine)["stack"] == "lab"


def test_another_tensorflow_and_back_to_the_venv_that_stayed(invoke: FrontDoor, machine: Machine) -> None:
    choose = ("--hosts", HOST, "--var", f"stack={TENSORFLOW}")
    home = on(machine, "readlink /opt/tensorflow-2.9").strip()
    assert set(planned(invoke.json("plan", *choose, status=3))) == {"tensorflow"}
    invoke.json("provision", *choose, status=0)
    assert versions(machine) == ["470.182.03", "2.9.3"]
    invoke.json("verify", *choose, status=0)
    assert on(machine, f"test -x {home}/bin/python && echo there").strip() == "there"

    built = on(machine, f"stat -c %Z {home}")
    back = invoke("rollback", *choose, "--to", "lab")
    assert back.returncode == 0, back.stderr
    assert "The inventory still names lab-2.9.3" in " ".join(back.stderr.split())
    assert versions(machine) == BEFORE
    assert on(machine, "readlink /opt/tensorflow-2.9").strip() == home
    assert on(machine, f"stat -c %Z {home}") == built, "it was switched to, and not built again"
    invoke.json("verify", "--hosts", HOST, status=0)


def test_a_second_rollback_finds_the_host_as_it_shall_be(invoke: FrontDoor, machine: Machine) -> None:
    (host,) = invoke.json("rollback", "--hosts", HOST, "--var", f"stack={TENSORFLOW}", status=0)["hosts"]
    assert (host["result"], host["changed"]) == ("as desired", False)


def test_a_stack_that_this_machine_did_not_keep_is_refused(invoke: FrontDoor, machine: Machine, tmp_path: Path) -> None:
    choose = ("--hosts", HOST, "--var", f"stack={TENSORFLOW}")
    done = invoke("rollback", *choose, HOSTWRIGHT_STATE=str(tmp_path))
    assert done.returncode == 1
    assert "names a stack that this machine does not have" in " ".join(done.stderr.split())
    assert versions(machine) == BEFORE


def record(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(on(machine, "cat /var/lib/hostwright/release.json"))
    return found


def former(machine: Machine) -> list[str]:
    return on(machine, f"for one in {FORMER}/*.json; do tr -d '\\n' <$one; echo; done").splitlines()
