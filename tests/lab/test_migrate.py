"""From TensorFlow 2.9 to a stack of today and back, by the commands of docs/operators/migrate.md.

The stack of today is one that the lab can have: the newer of its drivers, JAX of the index with one real wheel of CUDA
11, and containers in the mode of today. Drivers and container toolkit are stand-ins.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import yaml

from lab import fleet as lab_fleet
from lab.config import Lab, Machine
from lab.records import Snapshot, find_machine
from tests.lab.conftest import SMALL, UNATTENDED, FrontDoor, on
from tests.places import PROJECT

pytestmark = pytest.mark.long
HOST, STACK = "gpu05", "lab-today"
PAGE = (PROJECT / "docs/operators/migrate.md").read_text("utf-8")
#: the page's commands by their verbs, with the lab's host and stacks
COMMANDS = {
    words[0]: words
    for line in re.findall(r"^\$ hostwright (.+)$", PAGE, re.MULTILINE)
    for words in [
        shlex.split(
            line.replace("gpu01", HOST).replace("pytorch-2.14", STACK).replace("--to tensorflow-2.9", "--to lab")
        )
    ]
}
PINS = """\
importlib-metadata==8.7.1
jax==0.4.30
jaxlib==0.4.30
ml-dtypes==0.5.4
numpy==2.0.2
nvidia-nvtx-cu11==11.8.86
opt-einsum==3.4.0
scipy==1.13.1
zipp==3.23.1
"""
OTHER_LAYERS = "base,driver,container"  # the lab's JAX has no plugin for CUDA, and its check says so
#: a person's container, which starts again by itself
TRAINING = """\
tar -chf - --no-recursion -C / etc/debian_version $(ldd /bin/sleep | grep -oE '/[^ ]+' | sed 's|^/||') bin/sleep |
  docker import - people >/dev/null
docker run -d --name training --gpus all --network none --restart unless-stopped people /bin/sleep 100000
"""
STARTED = "docker inspect -f '{{.State.Running}} {{.State.StartedAt}}' training"
OLD = "/opt/tensorflow-2.9/bin/python -c 'import tensorflow as tf; print(tf.__version__)' 2>/dev/null"
NEW = "/opt/jax-0.4/bin/python -c 'import jax; print(jax.__version__)'"


@pytest.fixture(scope="module")
def migrating(provisioned: FrontDoor, lab: Lab) -> FrontDoor:
    """``invoke``, with the stack of today in the site."""
    stacks = lab.inventory.parent / "stacks"
    (stacks / "constraints").mkdir(exist_ok=True)
    (stacks / "constraints/jax-lab.txt").write_text(PINS)
    today = {
        "extends": "lab-470.256",
        "description": "JAX of the index beside the lab's newer driver",
        "roles": ["base", "driver", "jax", "container"],
        "container": {"toolkit": {"mode": "auto"}},
        "jax": {"version": "0.4.30", "pythons": ["3.9"], "constraints": {"3.9": "constraints/jax-lab.txt"}},
    }
    (stacks / f"{STACK}.yml").write_text(yaml.safe_dump(today))
    return provisioned


@pytest.fixture(scope="module")
def machine(lab: Lab, migrating: FrontDoor, as_provisioned: Snapshot) -> Iterator[Machine]:
    """A host with TensorFlow 2.9, on which somebody's container runs."""
    lab_fleet.up(lab, [HOST], options=SMALL, snapshot=as_provisioned)
    machine = find_machine(lab, HOST)
    on(machine, TRAINING)
    yield machine
    lab_fleet.remove(lab, [HOST])


def say(door: FrontDoor, verb: str, *more: str, status: int) -> str:
    """Run the page's command of that verb; what it prints."""
    done = door(*COMMANDS[verb], *more, **UNATTENDED.get(verb, {"HOSTWRIGHT_YES": "1"}))
    assert done.returncode == status, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def test_the_page_has_the_commands_of_the_way_there_and_back() -> None:
    assert list(COMMANDS) == ["stacks", "mirror", "plan", "provision", "verify", "rollback", "remove"]


def test_the_plan_names_what_changes_and_whose_container_is_ended(migrating: FrontDoor, machine: Machine) -> None:
    assert STACK in say(migrating, "stacks", status=0)
    say(migrating, "mirror", status=0)
    text = say(migrating, "plan", status=3)
    for part in ("470.256.02, by DKMS", "/opt/jax-0.4", "/etc/profile.d/cuda.sh", "legacy → auto", "training"):
        assert part in text, part
    before = on(machine, STARTED)
    assert "training" in say(migrating, "provision", status=1)
    assert on(machine, STARTED) == before


def test_both_environments_work_and_the_container_runs_again(migrating: FrontDoor, machine: Machine) -> None:
    before = on(machine, STARTED)
    say(migrating, "provision", "--force", status=0)
    say(migrating, "plan", status=0)
    say(migrating, "verify", "--roles", OTHER_LAYERS, status=0)
    assert on(machine, "cat /sys/module/nvidia/version").strip() == "470.256.02"
    assert (on(machine, OLD).strip(), on(machine, NEW).strip()) == ("2.9.0", "0.4.30")
    assert on(machine, "ls /etc/profile.d/cuda.sh 2>/dev/null || true").strip() == ""
    running, started = on(machine, STARTED).split()
    assert running == "true"
    assert started != before.split()[1]


def test_the_way_back_brings_what_was_recorded(migrating: FrontDoor, machine: Machine) -> None:
    say(migrating, "rollback", "--force", status=0)
    assert on(machine, "cat /sys/module/nvidia/version").strip() == "470.182.03"
    assert on(machine, "test -e /etc/profile.d/cuda.sh; echo there").strip() == "there"
    assert on(machine, OLD).strip() == "2.9.0"
    assert on(machine, STARTED).split()[0] == "true"
    migrating.json("plan", "--hosts", HOST, status=0)
    migrating.json("verify", "--hosts", HOST, status=0)


def test_the_former_layers_go_when_nobody_needs_them(migrating: FrontDoor, machine: Machine) -> None:
    say(migrating, "provision", "--force", status=0)
    say(migrating, "remove", status=0)
    left = on(machine, "ls -d /opt/tensorflow-2.9 /usr/local/cuda-11.2 /etc/ld.so.conf.d/cuda-11-2.conf 2>&1 || true")
    assert left.count("No such file") == 3, left
    assert on(machine, NEW).strip() == "0.4.30"
    say(migrating, "provision", "--force", status=0)  # the venv package that both layers wanted is marked automatic
    say(migrating, "plan", status=0)
