"""CDI with Debian 13's own Docker, which reads CDI specifications, and two versions of the container toolkit.

The toolkit is upgraded from 1.17.8, which writes no specification, to 1.20.0, damaged, repaired and removed. systemd,
dpkg, Docker 26.1 and containerd are real; the driver and the toolkit are stand-ins.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from lab import faults
from lab.config import HostOptions, Lab, Machine
from lab.machine import wait_for_ssh
from tests.lab.conftest import FrontDoor, Guest, on

pytestmark = pytest.mark.long
HOST, TODAY, FORMER = "trixie02", "cdi-today", "cdi-former"
SPEC = "/var/run/cdi/nvidia.yaml"
STACKS: dict[str, dict[str, Any]] = {
    TODAY: {
        "extends": "lab",
        "description": "the lab's driver and containers with CDI, on Debian 13",
        "distributions": {"debian": ["13"]},
        "roles": ["base", "driver", "container"],
        "container": {"toolkit": {"mode": "auto"}},
    },
    FORMER: {
        "extends": TODAY,
        "description": "the same, with the toolkit that stacks had before",
        "container": {"toolkit": {"version": "1.17.8-1"}},
    },
}
#: Docker 26 disables IPv6 on each interface of a container, but /proc/sys of a lab host is read-only.
DOCKER_IN_THE_LAB = """\
mkdir -p /etc/systemd/system/docker.service.d
printf '[Service]\\nEnvironment=DOCKER_ALLOW_IPV6_ON_IPV4_INTERFACE=1\\n' >/etc/systemd/system/docker.service.d/lab.conf
systemctl daemon-reload
"""
IMAGE = "tar -chf - --no-recursion -C / etc/debian_version $(ldd /bin/ls | grep -oE '/[^ ]+' | sed 's|^/||') bin/ls"


def chosen(stack: str) -> tuple[str, ...]:
    return ("--hosts", HOST, "--var", f"stack={stack}")


@pytest.fixture(scope="module")
def machine(lab: Lab, invoke: FrontDoor, guest: Guest) -> Machine:
    """A host with the older toolkit."""
    for name, stack in STACKS.items():
        (lab.inventory.parent / "stacks" / f"{name}.yml").write_text(yaml.safe_dump(stack))
    brought = guest(HOST, HostOptions(profile="small", distro="trixie"))
    on(brought, DOCKER_IN_THE_LAB)
    invoke.json("mirror", "--stack", TODAY, status=0)
    invoke.json("provision", *chosen(FORMER), status=0)
    return brought


def test_the_former_toolkit_writes_no_specification(invoke: FrontDoor, machine: Machine) -> None:
    invoke.json("plan", *chosen(FORMER), status=0)
    invoke.json("verify", *chosen(FORMER), "--roles", "container", status=0)
    assert on(machine, "dpkg-query -W -f '${Version}' nvidia-container-toolkit") == "1.17.8-1"
    assert on(machine, "ls /var/run/cdi 2>/dev/null | wc -l").strip() == "0"


def test_after_the_upgrade_docker_gives_gpus_by_the_specification(invoke: FrontDoor, machine: Machine) -> None:
    (host,) = invoke.json("provision", *chosen(TODAY), status=0)["hosts"]
    assert host["changed"]
    invoke.json("plan", *chosen(TODAY), status=0)
    assert on(machine, "dpkg-query -W -f '${Version}' nvidia-container-toolkit") == "1.20.0-1"
    units = on(machine, "systemctl is-enabled nvidia-cdi-refresh.path nvidia-cdi-refresh.service").split()
    assert units == ["enabled", "enabled"]
    assert on(machine, "systemctl show -p Result --value nvidia-cdi-refresh.service").strip() == "success"
    assert "/var/run/cdi" in on(machine, "docker info --format '{{.CDISpecDirs}}'")
    # --device nvidia.com/gpu is one of its methods
    invoke.json("verify", *chosen(TODAY), "--roles", "container", status=0)
    image = on(machine, f"{IMAGE} | docker import - hostwright-cdi >/dev/null; echo hostwright-cdi").strip()
    devices = on(machine, f"docker run --rm --network none --device nvidia.com/gpu=all {image} /bin/ls /dev").split()
    assert "nvidia0" in devices
    on(machine, f"docker rmi -f {image} >/dev/null")


def test_a_stale_specification_is_found_and_made_anew(invoke: FrontDoor, machine: Machine) -> None:
    """It names the previous driver's libraries, so no container can start with it."""
    on(machine, f"sed -i 's/470\\.182\\.03/470.141.03/' {SPEC}")
    (plan,) = invoke.json("plan", *chosen(TODAY), status=3)["plans"]
    changes = [change for role in plan["roles"] for change in role["changes"]]
    assert [change["what"] for change in changes] == ["CDI specification"]
    assert "470.141.03, which is not there" in changes[0]["have"]
    failed = invoke.json("verify", *chosen(TODAY), "--roles", "container", status=1)
    assert "made for another driver" in str(failed)
    invoke.json("provision", *chosen(TODAY), status=0)
    assert "470.141.03" not in on(machine, f"cat {SPEC}")
    invoke.json("verify", *chosen(TODAY), "--roles", "container", status=0)


def test_it_is_written_anew_at_each_boot(invoke: FrontDoor, machine: Machine) -> None:
    made = on(machine, f"stat -c %Y {SPEC}")
    faults.reboot(machine)
    wait_for_ssh(machine)
    invoke.json("verify", *chosen(TODAY), "--roles", "container", status=0)
    invoke.json("plan", *chosen(TODAY), status=0)
    assert on(machine, f"stat -c %Y {SPEC}") > made


def test_the_former_toolkit_again_takes_the_specification_away(invoke: FrontDoor, machine: Machine) -> None:
    invoke.json("provision", *chosen(FORMER), status=0)
    invoke.json("plan", *chosen(FORMER), status=0)
    left = f"ls {SPEC} /etc/systemd/system/multi-user.target.wants/nvidia-cdi-refresh.* 2>/dev/null || true"
    assert on(machine, left).strip() == ""
    invoke.json("provision", *chosen(TODAY), status=0)
    assert "nvidia.com/gpu" in on(machine, f"cat {SPEC}")


def test_removal_takes_toolkit_units_and_docker_away(invoke: FrontDoor, machine: Machine) -> None:
    invoke.json("remove", *chosen(TODAY), "--roles", "container", status=0)
    left = on(
        machine, "dpkg-query -W -f '${Package} ${db:Status-Abbrev}\\n' | grep -E 'nvidia-c|docker' || true"
    ).split()
    assert left == []
    assert on(machine, "find /etc/docker /etc/cdi /var/run/cdi -type f 2>/dev/null | wc -l").strip() == "0"
    assert on(machine, "systemctl list-unit-files 'nvidia-cdi*' --no-legend | wc -l").strip() == "0"
