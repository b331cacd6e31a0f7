"""Overrides of the stack, missing parts and stopped units are reported with file and line, card, or unit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hostwright.standard.roles.driver.states import steps
from lab.config import Lab, Machine
from tests.lab.conftest import FrontDoor, on

LATE, CONDA = "/etc/profile.d/zz-local.sh", "/etc/profile.d/miniconda.sh"
STUBS = "/etc/ld.so.conf.d/00-cuda-stubs.conf"
LIB = "/usr/local/cuda-11.2/targets/x86_64-linux/lib"
ENVIRONMENT = ("--hosts", "gpu01", "--roles", "environment")
UNIT = "/run/systemd/system/exporter.service"
EXPORTER = (
    "[Service]\\nExecStart=/bin/sh -c 'exec 3</dev/nvidiactl; exec sleep 3600'\\nRestart=always\\nRestartSec=100ms\\n"
)


@pytest.fixture
def host(provisioned: FrontDoor, gpu01: Machine) -> Iterator[Machine]:
    """A provisioned host; its start files are restored afterwards."""
    on(gpu01, "cp -p ~ops/.bashrc /root/bashrc")
    yield gpu01
    on(gpu01, f"cp -p /root/bashrc ~ops/.bashrc; rm -rf {LATE} {CONDA} /opt/miniconda3")


def test_what_start_files_print_makes_no_healthy_host_fail(provisioned: FrontDoor, host: Machine) -> None:
    on(host, f"printf '\\033[1m' >>~ops/.bashrc; printf 'printf \"\\\\033[1m\"\\necho Welcome\\nset -u\\n' >{LATE}")
    done = provisioned("verify", *ENVIRONMENT)
    assert done.returncode == 0, done.stdout


def test_a_path_that_is_set_later_is_named_by_verify_and_the_doctor(provisioned: FrontDoor, host: Machine) -> None:
    on(host, f"echo 'if true; then export PATH=/usr/bin:/bin; fi' >{LATE}")
    failed = provisioned("verify", *ENVIRONMENT)
    assert failed.returncode != 0
    assert f"nvcc is /usr/bin/nvcc, not /usr/local/cuda-11.2/bin/nvcc; {LATE}:1: PATH=/usr/bin:/bin" in failed.stdout
    doctor = provisioned("doctor", *ENVIRONMENT)
    assert "path-replaced" in doctor.stdout
    assert f"{LATE}:1" in doctor.stdout


def test_a_path_of_sessions_without_programs_fails_only_what_users_meet(provisioned: FrontDoor, host: Machine) -> None:
    """archcraft-os/archcraft#455: the line is named, and checks of healthy layers find their programs."""
    line = 'PATH="/usr/share/archcraft/scripts"'
    on(host, f"cp -p /etc/environment /root/environment; echo '{line}' >/etc/environment")
    try:
        failed = provisioned("verify", "--hosts", "gpu01", "--roles", "base,environment")
        doctor = provisioned("doctor", *ENVIRONMENT)
    finally:
        on(host, "cp -p /root/environment /etc/environment")
    assert failed.returncode != 0
    assert "✓ base: 7 checks" in failed.stdout
    assert f"nvcc is not on its PATH; /etc/environment:1: {line}" in failed.stdout
    assert f"/etc/environment:1: {line}" in doctor.stdout


def test_a_copy_of_a_library_that_wins_is_named_and_where_it_is_set(provisioned: FrontDoor, host: Machine) -> None:
    on(host, f"mkdir -p /opt/miniconda3/lib; cp -L {LIB}/libcudart.so.11.0 /opt/miniconda3/lib")
    on(host, f"echo 'C=/opt/miniconda3; export LD_LIBRARY_PATH=$C/lib:$LD_LIBRARY_PATH' >{CONDA}")
    failed = provisioned("verify", *ENVIRONMENT)
    assert failed.returncode != 0
    assert "libcudart.so.11.0 (it is /opt/miniconda3/lib/libcudart.so.11.0)" in failed.stdout
    assert f"{CONDA}:1: LD_LIBRARY_PATH=/opt/miniconda3/lib" in failed.stdout
    assert "library-path-first" in provisioned("doctor", *ENVIRONMENT).stdout


def test_stubs_that_win_in_the_loaders_cache_are_named_by_every_verb(provisioned: FrontDoor, host: Machine) -> None:
    on(host, f"echo /usr/local/cuda-11.2/lib64/stubs >{STUBS}; ldconfig")
    try:
        failed = provisioned("verify", "--hosts", "gpu01", "--roles", "driver")
        tried = provisioned("provision", "--hosts", "gpu01", "--roles", "driver", "--yes")
    finally:
        on(host, f"rm {STUBS}; ldconfig")
    assert "driver-library-shadowed  driver  explains 5 failed checks" in failed.stdout
    assert "module-missing" not in failed.stdout
    assert f"remove that line from {STUBS}, then run `ldconfig`" in tried.stderr
    assert provisioned("plan", "--hosts", "gpu01", "--roles", "driver").returncode == 0


def test_fewer_cards_than_the_inventory_says_fail_everywhere(
    provisioned: FrontDoor, lab: Lab, host: Machine, tmp_path: Path
) -> None:
    copy = tmp_path / "inventory"
    shutil.copytree(lab.inventory.parent, copy)
    (copy / "host_vars").mkdir()
    (copy / "host_vars" / "gpu01.yml").write_text(yaml.safe_dump({"hostwright_gpus": 4}))
    of_host = ("--hosts", "gpu01")
    plan = provisioned("plan", *of_host, inventory=str(copy))
    assert (plan.returncode, "1 of 4 GPUs" in plan.stdout) == (0, True)
    audit = provisioned("audit", *of_host, inventory=str(copy))
    assert audit.returncode != 0
    assert "1 of the 4 GPUs of the inventory" in audit.stdout
    assert "gpus-fewer" in provisioned("doctor", *of_host, inventory=str(copy)).stdout
    verify = provisioned("verify", *of_host, "--roles", "driver", inventory=str(copy))
    assert verify.returncode != 0
    assert "1 of 4 GPUs (hostwright_gpus)" in verify.stdout


def test_a_unit_that_is_stopped_for_the_driver_runs_again(host: Machine) -> None:
    on(host, f'printf "{EXPORTER}" >{UNIT}; systemctl daemon-reload; systemctl start exporter')
    try:
        on(host, steps.unload(force=True, build=False))
        told = on(host, steps.LOAD)
        assert "hostwright: note: exporter.service was stopped for the driver and runs again" in told
        assert on(host, "systemctl is-active exporter").strip() == "active"
    finally:
        on(host, f"systemctl stop exporter; rm {UNIT}; systemctl daemon-reload")
