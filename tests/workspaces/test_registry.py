"""A registry of the fleet's own: a real docker-registry on one lab host, which another pulls from over TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab import fleet, images
from lab.config import Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ownlab import own_lab

TAG = images.PYTHON.tag
AUTHORITY = "/etc/docker/certs.d/reg01:5000/ca.crt"
UNSAFE = "-o DPkg::Options::=--force-unsafe-io"  # the hosts are thrown away: no waiting for their disk
DOCKER = f"DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends {UNSAFE} docker.io"
INVENTORY = """\
all:
  vars: {hostwright_roles: [registry], registry_at: 'reg01:5000'}
  hosts: {img02: , reg01: {registry_serve: true}}
"""
PUSH = ("images.push", "--hosts", "all", "--registry", "--archive")


@pytest.fixture(scope="module")
def opened() -> Iterator[Lab]:
    """Two hosts with Docker; the registry on one, believed by both."""
    with own_lab("sharing") as lab:
        fleet.supply(lab, SMALL)
        fleet.up(lab, ["img02", "reg01"], options=SMALL)
        (lab.inventory.parent / "registry.yml").write_text(INVENTORY)
        address = on(
            find_machine(lab, "reg01"), "ip -o -4 addr show scope global | sed -n 's/.*inet \\([0-9.]*\\).*/\\1/p'"
        )
        for name in ("img02", "reg01"):
            machine = find_machine(lab, name)
            on(machine, f"command -v docker >/dev/null || {{ apt-get -q update; {DOCKER}; }}")
            on(machine, f"grep -q ' reg01$' /etc/hosts || echo '{address.split()[0]} reg01' >>/etc/hosts")
        door = FrontDoor(lab)
        door.json("provision", "--hosts", "reg01", status=0)
        trusted = door("registry.trust", "--host", "reg01")
        assert trusted.returncode == 0, trusted.stderr
        door.json("provision", "--hosts", "all", status=0)
        yield lab


@pytest.fixture
def hosts(opened: Lab) -> Iterator[dict[str, Machine]]:
    """Both hosts, without the image; afterwards the registry runs and is believed."""
    machines = {name: find_machine(opened, name) for name in ("img02", "reg01")}
    for machine in machines.values():
        on(machine, "docker image ls -q --no-trunc | sort -u | xargs -r docker image rm -f >/dev/null")
    yield machines
    on(machines["reg01"], "systemctl start docker-registry")
    on(machines["img02"], f"[ ! -e /root/ca.crt ] || mv /root/ca.crt {AUTHORITY}")


@pytest.fixture
def door(opened: Lab) -> FrontDoor:
    return FrontDoor(opened)


def ids(machine: Machine) -> tuple[str, str]:
    """The image's ID, and the digest under which the registry has it."""
    form = "{{.Id}} {{range .RepoDigests}}{{.}} {{end}}"
    id_, reference = on(machine, f"docker image inspect --format '{form}' {TAG}").split()
    return id_, reference


def test_an_archive_is_sent_once_and_both_hosts_have_its_image(door: FrontDoor, hosts: dict[str, Machine]) -> None:
    archive = str(images.ensure(images.PYTHON))
    done = door(*PUSH, archive)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ids(hosts["img02"]) == ids(hosts["reg01"])
    assert ids(hosts["img02"])[1].startswith("reg01:5000/hostwright-lab/python@sha256:")
    assert done.stdout.count("is on the host") == 1  # the archive
    assert on(hosts["reg01"], f"docker run --rm {TAG} python3 -c 'print(6 * 7)'").strip() == "42"
    again = door.json(*PUSH, archive, status=0)
    assert [(row["host"], row["changed"]) for row in again["hosts"]] == [("reg01", False)]


def test_hosts_verify_and_audit_it(door: FrontDoor, hosts: dict[str, Machine]) -> None:
    verified = door("verify", "--hosts", "all")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    on(hosts["reg01"], "systemctl stop docker-registry")
    assert door("verify", "--hosts", "reg01").returncode != 0


def test_a_registry_that_is_down_is_said_to_be(door: FrontDoor, hosts: dict[str, Machine]) -> None:
    on(hosts["reg01"], "systemctl stop docker-registry")
    done = door(*PUSH, str(images.ensure(images.PYTHON)))
    assert done.returncode == 1
    assert "the registry reg01:5000 does not answer" in " ".join(done.stdout.split())
    assert on(hosts["reg01"], "docker image ls -q").strip() == ""
    on(hosts["reg01"], "systemctl start docker-registry")
    assert door(*PUSH, str(images.ensure(images.PYTHON))).returncode == 0
    assert ids(hosts["img02"]) == ids(hosts["reg01"])


def test_a_certificate_of_another_authority_is_refused(door: FrontDoor, hosts: dict[str, Machine]) -> None:
    other = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout /dev/null -subj /CN=other -days 2 -out {AUTHORITY}"
    on(hosts["img02"], f"mv {AUTHORITY} /root/ca.crt; {other} 2>/dev/null")
    done = door(*PUSH, str(images.ensure(images.PYTHON)))
    assert done.returncode == 1
    assert "has a certificate of an authority that this host does not know" in " ".join(done.stdout.split())
    assert on(hosts["reg01"], "docker image ls -q").strip() == ""
