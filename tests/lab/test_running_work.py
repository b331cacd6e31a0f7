"""Running work on a host is not disturbed: refusals, drains with a wait, force; pending reboots stay visible."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab.config import Lab, Machine
from tests.lab.conftest import FrontDoor, on

JOB = "/run/job.pid"
#: Emulates another loaded version of the module, which requires a reboot.
REBOOT_WANTED = "echo 460.32.03 >/sys/module/nvidia/version; sed -i s/470.182.03/460.32.03/ /proc/driver/nvidia/version"


@pytest.fixture
def busy(provisioned: FrontDoor, gpu01: Machine) -> Iterator[Machine]:
    """A provisioned host that requires a reboot, with a program on its GPU."""
    on(gpu01, f"systemd-run --quiet --unit=training sh -c 'exec 3</dev/nvidiactl; echo $$$$ >{JOB}; exec sleep 3600'")
    on(gpu01, f"until [ -s {JOB} ]; do sleep 0.1; done; {REBOOT_WANTED}")
    yield gpu01
    on(gpu01, "systemctl stop training 2>/dev/null || true; systemctl reset-failed training 2>/dev/null || true")
    assert provisioned("provision", "--hosts", "gpu01", "--force").returncode == 0


def with_hooks(lab: Lab, place: Path, drain: str, undrain: str, where: str = "host") -> str:
    """Write a copy of the inventory with these hooks for gpu01; return its path."""
    copy = place / "inventory"
    shutil.copytree(lab.inventory.parent, copy)
    (copy / "host_vars").mkdir()
    hooks = {"hostwright_drain": drain, "hostwright_undrain": undrain, "hostwright_drain_on": where}
    (copy / "host_vars" / "gpu01.yml").write_text(yaml.safe_dump({**hooks, "hostwright_drain_timeout": "2m"}))
    return str(copy)


def boot_id(machine: Machine) -> str:
    return on(machine, "cat /proc/sys/kernel/random/boot_id")


def test_a_host_in_use_is_refused_and_the_unit_is_named(provisioned: FrontDoor, busy: Machine):
    before = boot_id(busy)
    plan = provisioned.json("plan", "--hosts", "gpu01", status=3)["plans"][0]
    assert [user.partition(" ")[0] for user in plan["busy"]] == ["training.service"]
    refused = provisioned("provision", "--hosts", "gpu01")
    assert refused.returncode == 1
    assert "training.service (" in refused.stderr
    assert "--drain" in refused.stderr
    assert "--force" in refused.stderr
    assert boot_id(busy) == before
    on(busy, f"kill -0 $(cat {JOB})")


def test_without_a_drain_command_drain_is_refused(provisioned: FrontDoor, busy: Machine):
    refused = provisioned("provision", "--hosts", "gpu01", "--drain")
    assert refused.returncode == 1
    assert "hostwright_drain" in refused.stderr


def test_drained_work_ends_first_and_returns_afterwards(
    provisioned: FrontDoor, lab: Lab, busy: Machine, tmp_path: Path
):
    before = boot_id(busy)
    log = "/var/log/scheduler"
    drain = f'echo "drain $HOSTWRIGHT_HOST $(cat /proc/sys/kernel/random/boot_id)" >>{log}; systemctl stop training'
    undrain = f'echo "undrain $HOSTWRIGHT_HOST $(cat /proc/sys/kernel/random/boot_id)" >>{log}'
    inventory = with_hooks(lab, tmp_path, drain, undrain)
    done = provisioned("provision", "--hosts", "gpu01", "--drain", inventory=inventory)
    assert done.returncode == 0, done.stderr
    after = boot_id(busy)
    assert after != before
    said = on(busy, f"cat {log}; rm {log}").splitlines()
    assert said == [f"drain gpu01 {before.strip()}", f"undrain gpu01 {after.strip()}"]
    assert "drained.json" not in on(busy, "ls /var/lib/hostwright")


def test_a_drain_command_that_fails_leaves_the_host_untouched(
    provisioned: FrontDoor, lab: Lab, busy: Machine, tmp_path: Path
):
    before = boot_id(busy)
    inventory = with_hooks(lab, tmp_path, "echo 'no such partition' >&2; exit 3", "true", where="controller")
    failed = provisioned("provision", "--hosts", "gpu01", "--drain", inventory=inventory)
    assert failed.returncode == 1
    assert "no such partition" in failed.stderr
    assert boot_id(busy) == before
    on(busy, "rm -f /var/lib/hostwright/drained.json")


def test_a_run_that_died_after_draining_is_completed_by_the_next(
    provisioned: FrontDoor, lab: Lab, gpu01: Machine, tmp_path: Path
):
    """The mark of a drained host is on the host; a host as desired with the mark is undrained."""
    mark = {"schema": 1, "run": "run-1", "operator": "ada@desk", "reason": "reboots the host", "since": "2026-01-01"}
    on(gpu01, f"printf '%s' '{json.dumps(mark)}' >/var/lib/hostwright/drained.json")
    plan = provisioned.json("plan", "--hosts", "gpu01", status=0)["plans"][0]
    assert "ada@desk" in plan["notes"][0]
    inventory = with_hooks(lab, tmp_path, "true", "touch /run/undrained")
    assert provisioned("provision", "--hosts", "gpu01", inventory=inventory).returncode == 0
    on(gpu01, "test -e /run/undrained; test ! -e /var/lib/hostwright/drained.json")


def test_a_reboot_that_is_left_pending_is_seen_until_it_is_done(provisioned: FrontDoor, gpu01: Machine):
    on(gpu01, REBOOT_WANTED)
    before = boot_id(gpu01)
    for _ in range(2):
        left = provisioned.json("provision", "--hosts", "gpu01", "--no-reboot", status=3)["hosts"][0]
        assert left["result"] == "pending"
        assert "460.32.03 is loaded" in left["left"]["roles"][0]["changes"][0]["reason"]
    assert boot_id(gpu01) == before
    done = provisioned.json("provision", "--hosts", "gpu01", status=0)["hosts"][0]
    assert done["reboots"] == 1
    assert boot_id(gpu01) != before
