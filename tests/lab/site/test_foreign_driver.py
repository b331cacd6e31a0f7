"""A host with only ``base`` and ``chrony``, its distribution's driver, and a user's job on its card.

The host does not have the role ``driver``: every verb works, the driver stays unchanged, and changes that would disturb
the job are held back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lab.config import Machine
from tests.lab.conftest import on
from tests.lab.site.conftest import PLAIN
from tests.lab.site.installed import Site

pytestmark = pytest.mark.long  # downloads and installs Debian's driver: two minutes
ON = ("--hosts", PLAIN)
JOB = "/run/job.pid"
#: the role that requires a reboot, in addition to the host's two
REBOOTS = ("--var", "hostwright_roles=base,chrony,openfiles")
DRIVER = r"""
dpkg-query -W -f '${Package} ${Version} ${Status}\n' '*nvidia*' | grep ' installed$'
apt-mark showhold | grep nvidia || true
ls -l /usr/bin/nvidia-smi /usr/lib/x86_64-linux-gnu/nvidia/*/libcuda.so*
ls -l /etc/alternatives | grep nvidia
cat /sys/module/nvidia/version /proc/driver/nvidia/version
grep -rl nouveau /etc/modprobe.d || true; ls /etc/apt/preferences.d
"""


@pytest.fixture(scope="module")
def driver(site: Site, plain: Machine) -> str:
    """State of the driver before the tests: packages, links, the loaded module."""
    found = on(plain, DRIVER)
    assert "nvidia-tesla-470-smi 470.256.02" in found
    assert "libnvidia-tesla-470-cuda1" in found
    return found


@pytest.fixture(scope="module")
def job(plain: Machine, driver: str) -> Iterator[str]:
    """The process of a user's job that uses the card, and the current boot."""
    on(plain, f"systemd-run --quiet --unit=training sh -c 'exec 3</dev/nvidiactl; echo $$$$ >{JOB}; exec sleep 86400'")
    on(plain, f"until [ -s {JOB} ]; do sleep 0.1; done")
    yield at_work(plain)
    on(plain, "systemctl stop training")


def at_work(machine: Machine) -> str:
    """Return the boot, and the job with its start time; fails if the job has ended."""
    return on(machine, f"cat /proc/sys/kernel/random/boot_id; cut -d' ' -f1,2,22 /proc/$(cat {JOB})/stat")


@pytest.fixture(scope="module")
def provisioned(site: Site, job: str) -> Site:
    """The site, with its host provisioned to the two roles while the job ran."""
    (host,) = site.json("provision", *ON)["hosts"]
    assert (host["reboots"], host["changed"]) == (0, True)
    return site


@pytest.fixture(autouse=True)
def untouched(plain: Machine, job: str, driver: str) -> Iterator[None]:
    """Checks after each test: the driver is unchanged, the job runs, the host was not rebooted."""
    yield
    assert on(plain, DRIVER) == driver
    assert at_work(plain) == job


def test_plan_names_the_two_roles_and_nothing_of_a_driver(site: Site):
    (plan,) = site.json("plan", *ON, status=3)["plans"]
    assert [role["role"] for role in plan["roles"]] == ["base", "chrony"]
    steps = json.dumps([change["steps"] for role in plan["roles"] for change in role["changes"]])
    assert "nouveau" not in steps
    assert "purge" not in steps
    site.run("provision", *ON, "--check", status=3)


def test_a_second_run_finds_nothing_to_do(provisioned: Site):
    (plan,) = provisioned.json("plan", *ON)["plans"]
    assert plan["roles"] == []
    (host,) = provisioned.json("provision", *ON)["hosts"]
    assert not host["changed"]


def test_verify_runs_the_checks_of_the_two_roles(provisioned: Site):
    (host,) = provisioned.json("verify", *ON)["hosts"]
    assert host["passed"]
    assert {check["role"] for check in host["checks"]} == {"base", "chrony"}


def test_audit_and_doctor_find_nothing(provisioned: Site):
    (host,) = provisioned.json("audit", *ON)["hosts"]
    assert host["status"] == "desired"
    assert {layer["name"] for layer in host["layers"]} == {"base", "chrony", "gpu"}
    assert (host["findings"], host["deviations"], host["stand_ins"]) == ([], [], [])
    assert "no known problem" in provisioned.run("doctor", *ON)
    assert "desired" in provisioned.run("audit.history", *ON)


def test_rebuild_has_nothing_to_do(provisioned: Site):
    found = provisioned.json("rebuild", *ON, "--check")["decisions"][PLAIN]
    assert (found["way"], found["reasons"]) == ("nothing", ["the host is as desired"])


def test_the_other_verbs_work(provisioned: Site):
    assert PLAIN in provisioned.run("runs.show", *ON)
    provisioned.run("lock", *ON, "--reason", "a look at its fan", "--for", "1h")
    assert "a look at its fan" in provisioned.run("lock", *ON, "--list")
    assert "a look at its fan" in provisioned("remove", *ON).stderr
    provisioned.run("unlock", *ON)
    provisioned.run("remove", *ON, "--check", status=3)
    provisioned("rollback", *ON, "--check")


def test_a_reboot_is_held_back_though_the_driver_role_is_off(provisioned: Site):
    (plan,) = provisioned.json("plan", *ON, *REBOOTS, status=3)["plans"]
    assert [user.partition(" ")[0] for user in plan["busy"]] == ["training.service"]
    refused = provisioned("provision", *ON, *REBOOTS)
    assert refused.returncode == 1
    assert "training.service (" in refused.stderr
    assert "--drain" in refused.stderr


def test_the_way_around_it_by_a_rebuild_is_held_back_as_well(provisioned: Site):
    found = provisioned.json("rebuild", *ON, *REBOOTS, "--check", status=3)["decisions"][PLAIN]
    assert found["way"] == "repair"
    refused = provisioned("rebuild", *ON, *REBOOTS)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "training.service (" in refused.stdout + refused.stderr


def test_remove_takes_the_two_roles_and_leaves_the_driver(provisioned: Site, plain: Machine):
    provisioned.run("remove", *ON)
    assert "chrony" not in on(plain, "dpkg-query -W -f '${Package} ${db:Status-Status}\\n' | grep ' installed'")
