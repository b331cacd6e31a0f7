"""NCCL and TensorRT, which are off by default, on a host that was provisioned without them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import fleet as lab_fleet
from lab.config import Lab, Machine
from lab.records import Snapshot, find_machine
from lab.vendor import nccl
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.trees import Tree

HOST = "optional01"
LAYERS = ("nccl", "tensorrt")
ON = ("--hosts", HOST, "--roles", ",".join(LAYERS))
ROLES = ["base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container", *LAYERS]
LIB = "/usr/lib/x86_64-linux-gnu"
TENSORRT, NVRTC = "/usr/local/TensorRT-7.2.3.4/lib", "/usr/local/cuda-11.1/targets/x86_64-linux/lib"
FOREIGN = ("2.16.5", "11.8")  #: version in NVIDIA's current repository

#: damage that provision repairs → layer whose checks fail, and known problems that an audit reports
DAMAGES: dict[str, tuple[str, frozenset[str]]] = {
    f"rm {LIB}/libnccl.so.2.8.4": ("nccl", frozenset()),
    "apt-mark unhold libnccl2": ("nccl", frozenset({"nccl-not-held"})),
    "dpkg -i --force-all /root/foreign.deb": ("nccl", frozenset({"nccl-other-build"})),
    f"rm {TENSORRT}/libnvinfer_plugin.so.7.2.3": ("tensorrt", frozenset()),
    f"rm {NVRTC}/libnvrtc.so.11.1*; ldconfig": ("tensorrt", frozenset({"tensorrt-nvrtc"})),
}
#: damage that breaks package dependencies, which is reported for dpkg as well
UNMET = frozenset({"dpkg -i --force-all /root/foreign.deb"})
#: damage that only its owner can undo → layer, problem, fix
BY_HAND = {
    f"mkdir /opt/x; cp -P {LIB}/libnccl.so.2* /opt/x; echo /opt/x >/etc/ld.so.conf.d/zz-x.conf; ldconfig": (
        "nccl",
        "nccl-in-loader",
    ),
    f"mkdir /opt/x; cp -P {TENSORRT}/libnvinfer.so.7* /opt/x; echo /opt/x >/etc/ld.so.conf.d/zz-x.conf; ldconfig": (
        "tensorrt",
        "tensorrt-in-loader",
    ),
}
CURE = "rm -r /opt/x /etc/ld.so.conf.d/zz-x.conf; ldconfig"
PLANTED = {name for _, names in DAMAGES.values() for name in names} | {name for _, name in BY_HAND.values()}

#: Waits for the files that a clone creates at its start: Docker's unique key, and the databases of Docker and
#: containerd.
SETTLED = """
systemctl start containerd.service docker.service
timeout 60 docker info >/dev/null
systemctl is-system-running --wait || :
"""
#: differences outside these layers → reason
OF_OTHERS = {
    r"/var/(cache|lib)/hostwright(/.*)?": "records of jobs and of what was there before, files of the stack",
    r"/(root|home/[a-z0-9]+)/\..*": "what programs keep for whoever ran them in a check, as CUDA's compiled kernels",
    r"/opt/.*/__pycache__(/.*)?": "Python's, of what nobody had imported before a check did",
    r"/var/lib/(containerd|docker)/.*\.db": "of daemons that run; no layer here changes anything in them",
}


@pytest.fixture(scope="module")
def machine(lab: Lab, provisioned: FrontDoor, as_provisioned: Snapshot, tmp_path_factory: Any) -> Iterator[Machine]:
    """A provisioned host, with a package that a user will install there."""
    lab_fleet.up(lab, [HOST], options=SMALL, snapshot=as_provisioned)
    found = find_machine(lab, HOST)
    deb = nccl.runtime(tmp_path_factory.mktemp("foreign"), *FOREIGN)
    shutil.copyfile(deb, found.merged / "root/foreign.deb")
    yield found
    lab_fleet.remove(lab, [HOST])


class Door:
    """``invoke`` on an inventory in which that host has both layers."""

    def __init__(self, door: FrontDoor, folder: Path):
        self.door, self.inventory = door, folder
        written = yaml.safe_load(door.lab.inventory.read_text())["lab"]
        host = {**written["hosts"][HOST], "stack": "lab-nccl-tensorrt", "hostwright_roles": ROLES}
        hosts = {"all": {"vars": written["vars"], "hosts": {HOST: host}}}
        (folder / "hosts.yml").write_text(yaml.safe_dump(hosts))
        (folder / "stacks").mkdir()
        for stack in door.lab.stack.parent.glob("lab*.yml"):
            shutil.copy2(stack, folder / "stacks")

    def run(self, *words: str, status: int = 0) -> str:
        done = self.door(*words, inventory=str(self.inventory))
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def host(self, *words: str, status: int = 0) -> dict[str, Any]:
        (host,) = json.loads(self.run(*words, *ON, "--json", status=status))["hosts"]
        found: dict[str, Any] = host
        return found


@pytest.fixture(scope="module")
def before(machine: Machine) -> Tree:
    """Tree of the provisioned host without both layers, after all its services have started."""
    on(machine, SETTLED)
    return Tree.of(machine)


@pytest.fixture(scope="module")
def door(provisioned: FrontDoor, before: Tree, tmp_path_factory: pytest.TempPathFactory) -> Door:
    """``invoke`` for the host with both layers."""
    made = Door(provisioned, tmp_path_factory.mktemp("optional"))
    made.run("mirror")
    (plan,) = json.loads(made.run("plan", "--hosts", HOST, "--json", status=3))["plans"]
    assert [role["role"] for role in plan["roles"]] == list(LAYERS), "the others are as desired already"
    made.run("provision", *ON)
    return made


def test_a_second_run_finds_nothing_to_do_and_every_check_passes(door: Door, machine: Machine):
    door.run("plan", "--hosts", HOST)
    verdict = door.host("verify")
    assert verdict["passed"]
    checks = {(check["role"], check["check"]) for check in verdict["checks"] if check["passed"]}
    assert checks > {("nccl", "test_a_program_is_compiled_with_this_version_and_gets_it")}
    assert checks > {("tensorrt", "test_tensorflow_opens_it")}
    assert {"cuda-nvrtc-11-1", "libnccl-dev", "libnccl2"} <= set(on(machine, "apt-mark showhold").split())


def test_audit_reads_both_and_finds_nothing(door: Door):
    audit = door.host("audit")
    assert audit["status"] == "desired"
    read = {(one["layer"], one["name"]): one["have"] for one in audit["readings"]}
    assert read["nccl", "libnccl2"] == "2.8.4-1+cuda11.2"
    assert read["tensorrt", "libnvinfer from"] == f"{TENSORRT}/libnvinfer.so.7"
    assert {"libnccl2_2.8.4-1+cuda11.2_amd64.deb", "cuda-nvrtc-11-1_11.1.105-1_amd64.deb"} <= set(audit["stand_ins"])


def test_the_proof_of_nccl_is_compiled_and_a_card_that_computes_nothing_fails(door: Door):
    told = json.loads(door.run("prove", "--hosts", HOST, "--proofs", "nccl", "--json", status=3))
    (result,) = told["hosts"][0]["results"]
    assert (result["proof"], result["outcome"]) == ("nccl.allreduce", "failed")
    assert "CUDA sees none of 1 cards" in result["sentence"]


@pytest.mark.parametrize(
    "damage",
    [pytest.param(one, marks=() if number == 0 else pytest.mark.long) for number, one in enumerate(DAMAGES)],
)
def test_damage_fails_a_check_is_named_and_is_mended_in_its_layer_alone(door: Door, machine: Machine, damage: str):
    layer, problems = DAMAGES[damage]
    on(machine, damage)
    failed = {check["role"] for check in door.host("verify", status=1)["checks"] if check["passed"] is False}
    assert failed == {layer}
    audit = door.host("audit", status=3)
    assert {finding["rule"] for finding in audit["findings"]} == problems
    assert audit["status"] != "desired"
    (plan,) = json.loads(door.run("plan", "--hosts", HOST, "--json", status=3))["plans"]
    assert [role["role"] for role in plan["roles"]] == (["base", layer] if damage in UNMET else [layer])
    door.run("provision", *ON)
    assert door.host("verify")["passed"]


def test_audit_names_the_foreign_version(door: Door, machine: Machine):
    on(machine, "dpkg -i --force-all /root/foreign.deb")
    try:
        audit = door.host("audit", status=3)
    finally:
        door.run("provision", *ON)
    read = {one["name"]: (one["have"], one["want"]) for one in audit["readings"] if one["layer"] == "nccl"}
    assert read["libnccl2"] == ("2.16.5-1+cuda11.8", "2.8.4-1+cuda11.2")
    assert read["library"] == ("2.16.5", "2.8.4")


@pytest.mark.long
@pytest.mark.parametrize("damage", BY_HAND)
def test_another_copy_is_named_and_is_its_owners_to_take_away(door: Door, machine: Machine, damage: str):
    layer, problem = BY_HAND[damage]
    on(machine, damage)
    try:
        found = door.run("doctor", *ON, status=3)
        assert problem in found and "/opt/x/lib" in found
        assert layer in found
    finally:
        on(machine, CURE)
    door.run("doctor", *ON)


def test_removal_leaves_the_host_as_it_was_without_them(door: Door, machine: Machine, before: Tree):
    assert len(before.differences(Tree.of(machine))) > 20, "the comparison sees nothing"
    door.run("remove", *ON)
    assert before.differences(Tree.of(machine), but="|".join(OF_OTHERS)) == []
    verdict = json.loads(door.run("verify", *ON, "--json", status=1))["hosts"][0]
    assert {check["role"] for check in verdict["checks"] if check["passed"] is False} == set(LAYERS)
