"""``invoke audit`` and ``invoke doctor`` on real hosts: one channel, no changes, all output formats, hostile output."""

from __future__ import annotations

import json
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hostwright.audit.auditing import audit_host
from hostwright.fleet import TargetHost
from hostwright.transport.root.rootshell import RootShell
from lab.config import Lab, Machine
from lab.image import ensure_programs
from lab.records import find_machine
from lab.vendor import toolkit
from tests.lab.audit.bench import SETTLE
from tests.lab.conftest import FrontDoor, on

HOSTILE = "\\033[2J\\033]0;owned\\007<script>alert(1)</script>\\t=1+1\\n"
WATCHED = "find /etc /usr/local /var/lib/hostwright /opt -xdev -newer /tmp/before ! -name '*.pyc' | head"


@pytest.fixture(scope="module")
def settled(provisioned: FrontDoor, lab: Lab) -> FrontDoor:
    """Both hosts as desired, with everything on them started."""
    assert provisioned("provision", "--hosts", "gpu01,gpu02").returncode == 0
    for name in ("gpu01", "gpu02"):
        on(find_machine(lab, name), SETTLE)
    return provisioned


@pytest.fixture
def liar(settled: FrontDoor, gpu01: Machine) -> Iterator[Machine]:
    """A host whose nvidia-smi and files contain escape sequences and megabytes of data."""
    on(
        gpu01,
        "cp -p /usr/bin/nvidia-smi /root/smi; cp -p /etc/os-release /root/os; "
        f"printf '#!/bin/sh\\nwhile :; do printf \"{HOSTILE}\"; done\\n' >/usr/bin/nvidia-smi; "
        f"printf 'ID=debian\\nVERSION_ID=11\\nPRETTY_NAME=\"{HOSTILE}\"\\n' >/etc/os-release",
    )
    yield gpu01
    on(gpu01, "cp -p /root/smi /usr/bin/nvidia-smi; cat /root/os >/etc/os-release")


def test_an_audit_costs_one_exec_channel(settled: FrontDoor, target: TargetHost):
    shells: list[RootShell] = []

    def connect(one: TargetHost) -> RootShell:
        shells.append(one.connect())
        return shells[0]

    found, facts = audit_host(target, connect)
    assert (found.status, len(shells), shells[0].session.execs) == ("desired", 1, 1)
    assert facts is not None


def test_an_audit_and_the_doctor_change_nothing(settled: FrontDoor, gpu01: Machine):
    on(gpu01, "touch /tmp/before")
    assert settled("audit", "--hosts", "gpu01").returncode == 0
    assert settled("doctor", "--hosts", "gpu01").returncode == 0
    assert on(gpu01, WATCHED).strip() == ""


def test_without_sudo_root_probes_are_not_read(settled: FrontDoor, gpu01: Machine):
    on(gpu01, "mv /usr/bin/sudo /usr/bin/sudo.away")
    try:
        refused = settled("audit", "--hosts", "gpu01")
        assert refused.returncode == 1
        assert "sudo is not installed" in refused.stdout
        done = settled.json("audit", "--hosts", "gpu01", "--no-sudo", status=1)
    finally:
        on(gpu01, "mv /usr/bin/sudo.away /usr/bin/sudo")
    (host,) = done["hosts"]
    assert host["sentence"] == ""
    assert {layer["name"]: layer["status"] for layer in host["layers"]}["driver"] == "unread"
    loaded = next(one for one in host["readings"] if one["name"] == "loaded")
    assert loaded["have"] == loaded["want"]


def test_a_host_that_is_down_is_not_read_and_the_other_is(settled: FrontDoor, lab: Lab, tmp_path: Path):
    inventory = yaml.safe_load(lab.inventory.read_text())
    inventory["lab"]["hosts"]["gone"] = {"ansible_host": str(lab.gateway.ip), "ansible_port": 9}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory))
    shutil.copytree(lab.inventory.parent / "stacks", tmp_path / "stacks")
    done = settled("audit", "--hosts", "gpu02,gone", "--json", inventory=str(tmp_path))
    assert done.returncode == 1
    statuses = {host["host"]: host["status"] for host in json.loads(done.stdout)["hosts"]}
    assert statuses == {"gpu02": "desired", "gone": "unread"}


def test_stored_facts_are_judged_by_a_changed_stack(settled: FrontDoor, lab: Lab):
    assert settled("audit", "--hosts", "gpu01").returncode == 0
    same = settled.json("audit", "--hosts", "gpu01", "--offline", status=0)
    assert same["offline"] is True
    stack = lab.inventory.parent / "stacks" / "next.yml"
    stack.write_text(yaml.safe_dump({"extends": "lab", "container": {"toolkit": {"version": f"{toolkit.NEWER}-1"}}}))
    try:
        words = ("audit", "--hosts", "gpu01", "--offline", "--var", "stack=next")
        (host,) = settled.json(*words, status=3)["hosts"]
    finally:
        stack.unlink()
    assert {(one["layer"], one["why"]) for one in host["deviations"]} == {("container", "intent")}


def test_every_report_is_written_and_valid(settled: FrontDoor, tmp_path: Path):
    files = {name: tmp_path / f"fleet.{name}" for name in ("csv", "junit", "prometheus", "html")}
    words = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    done = settled("audit", "--hosts", "gpu01,gpu02", *words)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_mode & 0o777 == 0o600 and path.stat().st_size > 500 for path in files.values())
    ensure_programs({"promtool": "prometheus"})
    check = subprocess.run(
        ["promtool", "check", "metrics"], input=files["prometheus"].read_bytes(), capture_output=True, check=False
    )
    assert check.returncode == 0, check.stdout + check.stderr


def test_unwritable_report_is_refused_before_hosts_are_contacted(settled: FrontDoor):
    done = settled("audit", "--hosts", "gpu01", "--html", "/nowhere/fleet.html")
    assert done.returncode == 2
    assert "/nowhere" in done.stderr
    two = settled("audit", "--hosts", "gpu01", "--csv", "-", "--junit", "-")
    assert two.returncode == 2


def test_a_liar_breaks_nothing_and_is_seen(settled: FrontDoor, liar: Machine, tmp_path: Path):
    page = tmp_path / "fleet.html"
    done = settled("audit", "--hosts", "gpu01,gpu02", "--details", "--html", str(page))
    assert done.returncode == 1, done.stderr  # its cards cannot be read
    assert "driver-files-lost: /usr/bin/nvidia-smi" in done.stdout
    controls = {sign for sign in done.stdout if unicodedata.category(sign) == "Cc"} - {"\n"}
    assert not controls
    assert "\n=1+1" not in done.stdout
    assert "<script>alert" not in page.read_text("utf-8")
    assert "gpu02" in done.stdout
    assert page.stat().st_size < 5_000_000


def test_drifted_hosts_can_be_named_afterwards(settled: FrontDoor, gpu01: Machine):
    on(gpu01, "rm /etc/profile.d/cuda.sh")
    assert settled("audit", "--hosts", "gpu01,gpu02").returncode == 3
    named = settled.json("hosts", "--hosts", "@drifted", status=0)["hosts"]
    assert [host["host"] for host in named] == ["gpu01"]
    told = settled("audit.diff", "--since", "1h")
    assert told.returncode == 0
    assert settled("provision", "--hosts", "@drifted").returncode == 0
    assert settled("audit", "--hosts", "gpu01,gpu02").returncode == 0
    history = settled("audit.history", "--hosts", "gpu01")
    assert "/etc/profile.d/cuda.sh" in history.stdout
