"""Migration from TensorFlow 2.9 to a current stack and back, by the commands of docs/operators/migrate.md.

One section leads to a framework of another role, one to a later TensorFlow of the same role. The stacks contain what
the lab has: its newer driver, frameworks of the index with one real wheel of CUDA 11, and containers in the current
mode. Drivers and container toolkit are stand-ins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import fleet as lab_fleet
from lab.config import Lab, Machine
from lab.records import Snapshot, find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ways import OLD, STEPS, Way, typed

pytestmark = pytest.mark.long
HOST = "gpu05"
OTHER_LAYERS = "base,driver,container"  # the lab's frameworks find no CUDA, so their checks fail
BARE = {
    "extends": "lab-470.256",
    "description": "the lab's newer driver, and no framework",
    "roles": ["base", "driver", "container"],
    "container": {"toolkit": {"mode": "auto"}},
    **dict.fromkeys(("cuda", "cudnn", "tensorflow")),
}


JAX = """\
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
TENSORFLOW = """\
absl-py==2.3.1
astunparse==1.6.3
certifi==2026.10.18
cffi==2.0.0
charset-normalizer==3.5.2
cryptography==47.0.0
flatbuffers==25.12.19
gast==0.4.0
google-auth-oauthlib==1.0.0
google-auth==2.50.0
google-pasta==0.2.0
grpcio==1.80.1
h5py==3.14.0
idna==3.20
importlib-metadata==8.7.1
keras==2.14.0
libclang==18.1.1
markdown==3.9
markupsafe==3.0.4
ml-dtypes==0.2.0
numpy==1.26.4
nvidia-nvtx-cu11==11.8.86
oauthlib==4.0.1
opt-einsum==3.4.0
packaging==26.3
protobuf==4.25.9
pyasn1-modules==0.4.2
pyasn1==0.6.5
pycparser==2.23
requests-oauthlib==2.0.0
requests==2.32.5
setuptools==80.10.2
six==1.17.0
tensorboard-data-server==0.7.2
tensorboard==2.14.1
tensorflow-estimator==2.14.0
tensorflow-io-gcs-filesystem==0.37.1
tensorflow==2.14.1
termcolor==3.1.0
typing-extensions==4.16.0
urllib3==2.6.3
werkzeug==3.1.9
wheel==0.48.0
wrapt==1.14.2
zipp==3.23.1
"""
PINS = {
    Way("To PyTorch", "pytorch-2.14", "lab-today", "jax", "0.4.30"): JAX,
    Way("To TensorFlow 2.15", "tensorflow-2.15", "lab-keras2", "tensorflow", "2.14.1"): TENSORFLOW,
}
#: Starts a user's container that restarts automatically.
TRAINING = """\
tar -chf - --no-recursion -C / etc/debian_version $(ldd /bin/sleep | grep -oE '/[^ ]+' | sed 's|^/||') bin/sleep |
  docker import - people >/dev/null
docker run -d --name training --gpus all --network none --restart unless-stopped people /bin/sleep 100000
"""
STARTED = "docker inspect -f '{{.State.Running}} {{.State.StartedAt}}' training"


def write(way: Way, stacks: Path) -> None:
    """Write the current stack into a lab's site, beside the lab's own."""
    (stacks / "constraints").mkdir(exist_ok=True)
    (stacks / f"constraints/{way.stack}.txt").write_text(PINS[way])
    (stacks / "lab-bare.yml").write_text(yaml.safe_dump(BARE))
    today = {
        "extends": "lab-bare",
        "description": f"{way.role} of the index",
        "roles": ["base", "driver", way.role, "container"],
        way.role: {
            "version": way.version,
            "pythons": ["3.9"],
            "constraints": {"3.9": f"constraints/{way.stack}.txt"},
        },
    }
    (stacks / f"{way.stack}.yml").write_text(yaml.safe_dump(today))


@pytest.fixture(scope="module", params=PINS, ids=lambda way: way.stack)
def way(request: pytest.FixtureRequest) -> Way:
    """One section of the page."""
    chosen: Way = request.param
    return chosen


@pytest.fixture(scope="module")
def migrating(provisioned: FrontDoor, lab: Lab, way: Way) -> FrontDoor:
    """``invoke``, with the current stack in the site."""
    write(way, lab.stack.parent)
    return provisioned


@pytest.fixture(scope="module")
def machine(lab: Lab, migrating: FrontDoor, as_provisioned: Snapshot) -> Iterator[Machine]:
    """A host with TensorFlow 2.9 and a user's running container."""
    lab_fleet.up(lab, [HOST], options=SMALL, snapshot=as_provisioned)
    machine = find_machine(lab, HOST)
    on(machine, TRAINING)
    yield machine
    lab_fleet.remove(lab, [HOST])


def say(door: FrontDoor, way: Way, verb: str, *more: str, status: int) -> str:
    """Run the section's command of that verb; return its output."""
    return typed(door, way.commands(HOST, "lab")[verb], *more, status=status)


def test_the_section_has_the_commands_of_the_way_there_and_back(way: Way) -> None:
    assert list(way.commands(HOST, "lab")) == STEPS


def test_the_plan_names_what_changes_and_whose_container_is_ended(
    migrating: FrontDoor, way: Way, machine: Machine
) -> None:
    assert way.stack in say(migrating, way, "stacks", status=0)
    say(migrating, way, "mirror", status=0)
    text = say(migrating, way, "plan", status=3)
    for part in ("470.256.02, by DKMS", way.environment, "/etc/profile.d/cuda.sh", "legacy → auto", "training"):
        assert part in text, part
    before = on(machine, STARTED)
    assert "training" in say(migrating, way, "provision", status=1)
    assert on(machine, STARTED) == before


def test_both_environments_work_and_the_container_runs_again(migrating: FrontDoor, way: Way, machine: Machine) -> None:
    before = on(machine, STARTED)
    say(migrating, way, "provision", "--force", status=0)
    say(migrating, way, "plan", status=0)
    say(migrating, way, "verify", "--roles", OTHER_LAYERS, status=0)
    assert on(machine, "cat /sys/module/nvidia/version").strip() == "470.256.02"
    assert (on(machine, OLD).strip(), on(machine, way.new).strip()) == ("2.9.0", way.version)
    assert on(machine, "ls /etc/profile.d/cuda.sh 2>/dev/null || true").strip() == ""
    running, started = on(machine, STARTED).split()
    assert running == "true"
    assert started != before.split()[1]


def test_the_way_back_brings_what_was_recorded(migrating: FrontDoor, way: Way, machine: Machine) -> None:
    say(migrating, way, "rollback", "--force", status=0)
    assert on(machine, "cat /sys/module/nvidia/version").strip() == "470.182.03"
    assert on(machine, "test -e /etc/profile.d/cuda.sh; echo there").strip() == "there"
    assert on(machine, OLD).strip() == "2.9.0"
    assert on(machine, STARTED).split()[0] == "true"
    migrating.json("plan", "--hosts", HOST, status=0)
    migrating.json("verify", "--hosts", HOST, status=0)


def test_the_former_layers_go_when_nobody_needs_them(migrating: FrontDoor, way: Way, machine: Machine) -> None:
    """The new framework's own layers stay, and layers of the same role are installed again."""
    say(migrating, way, "provision", "--force", status=0)
    say(migrating, way, "remove", status=0)
    left = on(machine, "ls -d /opt/tensorflow-2.9 /usr/local/cuda-11.2 /etc/ld.so.conf.d/cuda-11-2.conf 2>&1 || true")
    assert left.count("No such file") == 3, left
    if way.role == "tensorflow":
        say(migrating, way, "provision", status=0)
    say(migrating, way, "plan", status=0)
    assert on(machine, way.new).strip() == way.version
