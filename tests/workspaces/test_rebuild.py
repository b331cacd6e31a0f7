"""SSH boxes whose images are built again: with a real Docker, real apt, and an update that comes in between.

The update is a package of the test's own, from an archive of packages on the host; everything else is Debian's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from lab import fleet
from lab.config import Lab, Machine
from lab.image import ensure_base
from lab.machine import inside
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ownlab import own_lab

UNSAFE = "-o DPkg::Options::=--force-unsafe-io"  # the host is thrown away: no waiting for its disk
DOCKER = f"DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends {UNSAFE} docker.io"
BASE, BOX = "hostwright-lab/debian:11", "workspace-alice-box"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID0Fl7l3eLK+d4Ez/PEEPGzn7MBQubH104CYzFf9H3gs alice@desk"
INVENTORY = f"""\
all:
  vars:
    hostwright_roles: [base, driver, container, workspaces]
    workspaces_users: {{alice: {{uid: 2001, keys: ['{KEY}']}}}}
  hosts:
    box01:
      workspaces_containers:
        alice-box: {{user: alice, kind: ssh, image: '{BASE}'}} # hers
"""
#: publishes the package hostwright-lab-fix in this version, in an archive that answers on the host's loopback
PUBLISH = """
mkdir -p /root/archive /root/fix/DEBIAN
cat >/root/fix/DEBIAN/control <<TEXT
Package: hostwright-lab-fix
Version: {version}
Architecture: all
Maintainer: lab
Description: a stand-in for a fix
TEXT
cd /root/archive
dpkg-deb -b /root/fix fix.deb >/dev/null
{{
  cat /root/fix/DEBIAN/control
  echo "Filename: ./fix.deb"
  echo "Size: $(stat -c %s fix.deb)"
  echo "SHA256: $(sha256sum fix.deb | cut -d' ' -f1)"
}} >Packages
systemctl is-active -q archive ||
  systemd-run -q --unit=archive python3 -m http.server -b 127.0.0.1 -d /root/archive 8099
for i in $(seq 300); do if curl -sf http://127.0.0.1:8099/Packages >/dev/null; then break; fi; sleep 0.1; done
"""
DOCKERFILE = """\
FROM debian-11
RUN echo 'deb [trusted=yes] http://127.0.0.1:8099 ./' >/etc/apt/sources.list.d/fix.list \
 && apt-get -q update && apt-get -q install -y hostwright-lab-fix
"""


@pytest.fixture(scope="module")
def opened() -> Iterator[Lab]:
    """A host with Docker and a Debian image that has the package in its first version."""
    with own_lab("refresh") as lab:
        fleet.supply(lab, SMALL)
        fleet.up(lab, ["box01"], options=SMALL)
        (lab.inventory.parent / "workspaces.yml").write_text(INVENTORY)
        machine = find_machine(lab, "box01")
        on(machine, f"command -v docker >/dev/null || {{ apt-get -q update; {DOCKER}; }}")
        on(machine, PUBLISH.format(version="1.0"))
        leave_out = ["--exclude=./var/cache/apt/archives/*.deb", "--exclude=./dev/*", "--exclude=./usr/share/doc"]
        root = subprocess.Popen(
            ["tar", "-C", ensure_base("bullseye", lab.cache), *leave_out, "-c", "."], stdout=subprocess.PIPE
        )
        subprocess.run(inside(machine, ["docker", "import", "-", "debian-11"]), stdin=root.stdout, check=True)
        assert root.wait() == 0
        subprocess.run(
            inside(machine, ["docker", "build", "-q", "--network", "host", "-t", BASE, "-"]),
            input=DOCKERFILE.encode(), check=True,
        )  # fmt: skip
        yield lab


def installed(machine: Machine) -> str:
    return on(machine, f"docker exec {BOX} dpkg-query -W -f '${{Version}}' hostwright-lab-fix").strip()


def test_a_box_gets_the_update_and_keeps_files_and_host_key(opened: Lab) -> None:
    machine, door = find_machine(opened, "box01"), FrontDoor(opened)
    made = door("provision", "--hosts", "box01", "--roles", "workspaces")
    assert made.returncode == 0, made.stdout + made.stderr
    assert installed(machine) == "1.0"
    on(machine, "echo kept >/srv/workspaces/alice/alice-box/notes")
    key = on(machine, "ssh-keyscan -t ed25519 -p $(docker port " + BOX + " | sed 's/.*://') 127.0.0.1 2>/dev/null")
    assert "ssh-ed25519" in key
    on(machine, PUBLISH.format(version="1.1"))

    assert door("images.rebuild", "--hosts", "box01", "--check").returncode == 3
    done = door("images.rebuild", "--hosts", "all", "--canary", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "    hostwright-lab-fix  1.0 → 1.1" in done.stdout.splitlines()
    assert installed(machine) == "1.1"
    assert on(machine, f"docker exec -u 2001 {BOX} cat /workspace/notes").strip() == "kept"
    again = on(machine, "ssh-keyscan -t ed25519 -p $(docker port " + BOX + " | sed 's/.*://') 127.0.0.1 2>/dev/null")
    assert again == key
    written = (opened.inventory.parent / "workspaces.yml").read_text()
    assert 'workspaces_refreshed: "' in written
    assert "# hers" in written

    same = door("images.rebuild", "--hosts", "box01")  # on the same day: nothing is left to do
    assert same.returncode == 0
    assert "was not rebuilt" in same.stdout
