"""A driver with a compiled module from an apt repository, on a host with the driver from its ``.run``, and back.

A CUDA toolkit is installed from the same repository and removed, with one list and one key. The repository is a
directory on the host; its packages are stand-ins under Ubuntu's names with the files of the lab's ``.run``. apt, dpkg,
keys, pins and holds are real; NVIDIA's and Ubuntu's archives are unreachable.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostwright.common.quoting import sh_file
from lab import fleet as lab_fleet
from lab.config import Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ownlab import own_lab

pytestmark = pytest.mark.long
HOST, STACK, VERSION = "gpu01", "lab-packages", "470.182.03"
ON = ("--hosts", HOST, "--roles", "base,driver")
CHOOSE = (*ON, "--var", f"stack={STACK}")
#: components of the lab's toolkit that the repository's toolkit lacks
COMPONENTS = ("cuda-cudart", "cuda-nvcc", "libcublas", "libcufft", "libcurand", "libcusolver", "libcusparse")
LISTS = "grep -ls srv/driver /etc/apt/sources.list.d/* || true"
HELD = "apt-mark showhold | grep 470-server | grep -c . || true"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One bare host in a separate lab."""
    with own_lab("drv") as opened:
        lab_fleet.supply(opened, SMALL)
        lab_fleet.up(opened, [HOST], options=SMALL)
        yield opened


@pytest.fixture(scope="module")
def invoke(lab: Lab) -> FrontDoor:
    """``invoke`` on that lab, whose host has the driver from the ``.run``."""
    door = FrontDoor(lab)
    door.json("mirror", "--stack", "lab", status=0)
    door.json("provision", *ON, status=0)
    return door


@pytest.fixture(scope="module")
def machine(lab: Lab, invoke: FrontDoor) -> Machine:
    return find_machine(lab, HOST)


def publish(lab: Lab, machine: Machine, folder: Path, validity: str) -> None:
    """Create the repository with a key of this validity, and the stack that refers to it."""
    script = sh_file(__file__, "driver_repository.sh", version=VERSION, validity=validity)
    fingerprint = on(machine, script).split()[-1]
    key = folder / f"key-{fingerprint}.asc"
    key.write_text(on(machine, "cat /srv/driver/key.asc"))
    repository = {"name": "lab-driver", "uri": "file:/srv/driver", "key": "driver-key", "fingerprint": fingerprint}
    components = {f"{name}-11-2": None for name in COMPONENTS}
    cuda: dict[str, Any] = {"repository": None, "network": repository, "components": components}
    driver: dict[str, Any] = {
        "artifact": None,
        "fabric_manager": None,
        "precompiled": "linux-modules-nvidia-470-server",
        "packages": dict.fromkeys(
            ("libnvidia-compute-470-server", "nvidia-utils-470-server", "nvidia-compute-utils-470-server"),
            f"{VERSION}-0lab1",
        ),
        "repository": repository,
    }
    artifact = {"file": key.name, "urls": [key.as_uri()], "stand_in": True}
    stack = {"extends": "lab", "description": "the lab's driver as packages", "driver": driver, "cuda": cuda}
    place = lab.inventory.parent / "stacks" / f"{STACK}.yml"
    place.write_text(yaml.safe_dump({**stack, "artifacts": {"driver-key": artifact}}))
    place.with_suffix(".lock.yml").unlink(missing_ok=True)


def test_a_key_that_expired_stops_before_the_driver_is_touched(
    lab: Lab, invoke: FrontDoor, machine: Machine, tmp_path: Path
) -> None:
    publish(lab, machine, tmp_path, "seconds=20")
    on(machine, "until gpg --homedir /root/driver-key --list-keys 2>/dev/null | grep -q expired; do sleep 0.2; done")
    invoke.json("mirror", "--stack", STACK, status=0)
    failed = invoke.json("provision", *CHOOSE, status=1)
    assert "expired on" in str(failed)
    assert on(machine, "cat /sys/module/nvidia/version").strip() == VERSION
    assert on(machine, HELD).strip() == "0"
    invoke.json("plan", "--hosts", HOST, "--roles", "driver", status=0)


def test_from_the_run_to_the_repository_and_back(lab: Lab, invoke: FrontDoor, machine: Machine, tmp_path: Path) -> None:
    publish(lab, machine, tmp_path, "1y")
    invoke.json("mirror", "--stack", STACK, status=0)
    invoke.json("provision", *CHOOSE, status=0)
    invoke.json("plan", *CHOOSE, status=0)
    invoke.json("verify", *CHOOSE, status=0)
    # three of the set and two of the module's; the third is independent of the branch
    assert on(machine, HELD).strip() == "5"
    assert "updates/dkms" not in on(machine, "modinfo -n nvidia")

    on(machine, "rm /usr/bin/nvidia-smi; apt-mark unhold nvidia-utils-470-server")
    invoke.json("provision", *CHOOSE, status=0)
    invoke.json("plan", *CHOOSE, status=0)
    assert on(machine, "nvidia-smi -L").startswith("GPU 0")

    both = ("--hosts", HOST, "--roles", "base,driver,cuda", "--var", f"stack={STACK}")
    invoke.json("provision", *both, status=0)
    (host,) = invoke.json("provision", *both, status=0)["hosts"]
    assert not host["changed"]
    assert on(machine, LISTS).split() == ["/etc/apt/sources.list.d/lab-driver.list"]
    invoke.json("remove", "--hosts", HOST, "--roles", "cuda", "--var", f"stack={STACK}", "--yes", status=0)
    assert on(machine, f"[ ! -e /usr/local/cuda-11.2 ] || echo toolkit; {LISTS}").split() == [
        "/etc/apt/sources.list.d/lab-driver.list"
    ]
    invoke.json("plan", *CHOOSE, status=0)

    (host,) = invoke.json("provision", *ON, status=0)["hosts"]
    assert host["changed"]
    assert on(machine, HELD).strip() == "0"
    assert "updates/dkms" in on(machine, "modinfo -n nvidia")
    invoke.json("verify", *ON, status=0)
