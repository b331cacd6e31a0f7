"""A clone of a provisioned host with three GPUs, and the usual workspaces on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from lab import fleet, images
from lab.config import HostOptions, Lab
from lab.records import Snapshot
from tests.lab.conftest import FrontDoor
from tests.lab.workspaces.desk import CARDS, HOST, ROLES, SETTLED, UIDS, Desk


@pytest.fixture(scope="package")
def bare_desk(
    lab: Lab, provisioned: FrontDoor, as_provisioned: Snapshot, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """The host with the image and without a workspace."""
    fleet.up(lab, [HOST], options=HostOptions(profile="small", hardware=CARDS), snapshot=as_provisioned)
    inventory = tmp_path_factory.mktemp("desk") / "inventory"
    shutil.copytree(lab.inventory.parent, inventory)
    (inventory / "host_vars").mkdir(exist_ok=True)
    (inventory / "host_vars" / f"{HOST}.yml").write_text(yaml.safe_dump({"hostwright_roles": ROLES}))
    desk = Desk(lab, provisioned, inventory)
    desk.on(f"{SETTLED}; useradd --uid {UIDS['bob']} --create-home bob")
    images.load(desk.machine, images.DESK)
    desk.declare()
    yield desk
    fleet.remove(lab, [HOST])


@dataclass(frozen=True)
class Made:
    """The host, and the output of the creation of its workspaces."""

    desk: Desk
    plan: Any
    containers_after_plan: str
    provisioned: Any


@pytest.fixture(scope="package")
def made(bare_desk: Desk) -> Made:
    """The usual workspaces, created from the inventory by the command line."""
    words = ("--hosts", HOST, "--roles", "workspaces")
    plan = bare_desk.json("plan", *words, status=3)
    containers = bare_desk.on("docker ps -aq")
    return Made(bare_desk, plan, containers, bare_desk.json("provision", *words))


@pytest.fixture
def desk(made: Made) -> Desk:
    """The host with the usual workspaces."""
    return made.desk


@dataclass(frozen=True)
class Runs:
    """Two batch runs on one card that have ended, and observations during the first."""

    desk: Desk
    script: str
    folders: dict[str, str]
    meanwhile: dict[str, str]  #: their states in ``workspace.list``
    log_meanwhile: str


@pytest.fixture(scope="package")
def runs(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A script of alice's that ends when a file exists, followed in the queue by a command of bob's."""
    desk = made.desk
    path = tmp_path_factory.mktemp("run") / "run.sh"
    path.write_text(
        "echo begun\nnvidia-smi -L\nwhile [ ! -e /workspace/go ]; do sleep 0.1; done\n"
        "echo once >>/workspace/times\necho ended\nexit 3\n"
    )
    up = ("workspace.up", "--host", HOST, "--kind", "batch", "--gpus", "2", "--image", images.DESK.tag)
    desk.done(*up, "--user", "alice", "--name", "a-run", "--script", str(path))
    folders = {"a-run": "/srv/workspaces/alice/a-run", "b-run": "/srv/workspaces/bob/b-run"}
    desk.await_(f"grep -q begun {folders['a-run']}/batch.log", "the first run has not begun")
    desk.done(*up, "--user", "bob", "--name", "b-run", "--command", "sh -c 'id -u'")
    meanwhile, log = desk.states(), desk.done("workspace.logs", "--name", "a-run")
    desk.as_account("alice", f"touch {folders['a-run']}/go").check_returncode()
    for folder in folders.values():
        desk.await_(f'grep -q \'"state":"ended"\' {folder}/batch.json', f"the run of {folder} does not end")
    return Runs(desk, path.read_text(), folders, meanwhile, log)
