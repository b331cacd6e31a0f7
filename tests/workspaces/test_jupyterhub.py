"""JupyterHub on a lab host: two people with passwords of their own, through nginx, with real Jupyters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from lab import fleet, images
from lab.config import HostOptions, Lab, Machine
from lab.hardware import T4, Hardware
from lab.machine import exec_in, why_no_limits
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.workspaces.hubs import Person, run_cell, until

HOST = "hub01"
ROLES = ["base", "driver", "container", "workspaces", "proxy", "jupyterhub"]
OPTIONS = HostOptions(profile="small", hardware=Hardware(cards=(T4, T4)))
PORT = 8443  #: of nginx
PASSWORDS = {"alice": "correct horse 1", "bob": "battery staple 2", "carol": "not invited 3"}
UIDS = {"alice": 2001, "bob": 2002, "carol": 2003}
PREFIX = "hostwright-hub-"
TENSORFLOW = """
import os, subprocess
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
model.compile(optimizer="sgd", loss="mse")
history = model.fit([[0.0], [1.0]], [[0.0], [2.0]], epochs=3, verbose=0).history["loss"]
try:
    cards = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
except FileNotFoundError:
    cards = ""
print("HAS", tf.__version__, os.getuid(), os.getgid(), os.getcwd(), len(history), cards.count("GPU "))
"""


@dataclass(frozen=True)
class Site:
    """One host with a hub, and what is declared for it."""

    lab: Lab
    machine: Machine
    invoke: FrontDoor

    def declare(self, *, users: dict[str, Any] | None = None, containers: dict[str, Any] | None = None) -> None:
        """Write the inventory; the hub has the second of the two cards."""
        people = users or {name: {"uid": UIDS[name]} for name in ("alice", "bob")}
        variables = {
            "workspaces_users": people,
            "workspaces_containers": containers or {},
            "proxy_listen": [str(PORT)],
            "jupyterhub_image": images.TENSORFLOW.tag,
            "jupyterhub_gpus": [1],
            "jupyterhub_memory": "3g",
            "jupyterhub_cpus": 1,
            "jupyterhub_pids": 500,
        }
        document = {"all": {"hosts": {HOST: {"hostwright_roles": ROLES, **variables}}}}
        (self.lab.inventory.parent / "workspaces.yml").write_text(yaml.safe_dump(document, sort_keys=False))

    def succeeds(self, *words: str) -> str:
        """Run one verb, which must succeed; what it printed."""
        done = self.invoke(*words)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def person(self, name: str) -> Person:
        """A browser that trusts the host's own authority and no other."""
        authority = self.machine.merged / "var/lib/hostwright/proxy/authority.crt"
        return Person(name, f"https://{self.machine.address}:{PORT}", authority)

    def inspected(self, name: str) -> dict[str, Any]:
        """What Docker says of somebody's container."""
        (found,) = json.loads(on(self.machine, f"docker container inspect {PREFIX}{name}"))
        return dict(found)

    def reboot(self) -> None:
        """Restart the host as its operator would, and wait for its Docker."""
        before = on(self.machine, "cat /proc/sys/kernel/random/boot_id").strip()
        exec_in(self.machine, ["systemctl", "reboot"])

        def again() -> bool:
            done = exec_in(self.machine, ["cat", "/proc/sys/kernel/random/boot_id"])
            return done.returncode == 0 and done.stdout.strip() != before

        until(again, "the host's reboot")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with own_lab("hubs") as lab:
        fleet.supply(lab, OPTIONS)
        fleet.up(lab, [HOST], options=OPTIONS)
        opened = Site(lab, find_machine(lab, HOST), FrontDoor(lab))
        opened.declare()
        for name, password in PASSWORDS.items():  # accounts of the host, with a password and a user id of their own
            account = f"id {name} >/dev/null 2>&1 || useradd --create-home --shell /bin/bash --uid {UIDS[name]} {name}"
            on(opened.machine, f"{account}\nprintf '%s:%s' {name} '{password}' | chpasswd")
        opened.succeeds("mirror", "--stack", "lab")
        opened.succeeds("provision", "--hosts", HOST, "--roles", "base,driver,container")
        opened.succeeds("images.push", "--hosts", HOST, "--archive", str(images.ensure(images.TENSORFLOW)))
        opened.succeeds("provision", "--hosts", HOST)
        yield opened


@pytest.fixture(scope="module")
def alice(site: Site) -> Person:
    """Logged in, with a server that has the hub's card."""
    person = site.person("alice")
    assert person.log_in(PASSWORDS["alice"])
    assert person.start(gpus=1) == ""
    return person


@pytest.fixture(scope="module")
def bob(site: Site) -> Person:
    """Logged in, with a server without a card."""
    person = site.person("bob")
    assert person.log_in(PASSWORDS["bob"])
    assert person.start() == ""
    return person


def ran(person: Person) -> list[str]:
    printed = run_cell(person.connect(person.kernel()), TENSORFLOW)
    return next(line for line in printed.splitlines() if line.startswith("HAS")).split()[1:]


def test_a_second_run_has_nothing_to_do_and_verify_agrees(site: Site) -> None:
    site.succeeds("plan", "--hosts", HOST)  # 3 where there is something to do
    site.succeeds("verify", "--hosts", HOST, "--roles", "jupyterhub")  # before anybody has a server


def test_only_the_inventorys_people_come_in_and_only_with_their_password(site: Site) -> None:
    assert not site.person("alice").log_in(PASSWORDS["bob"])
    assert not site.person("alice").log_in("")
    assert not site.person("carol").log_in(PASSWORDS["carol"])  # the account and the password are good
    assert not site.person("root").log_in("root")


def test_each_trains_a_model_as_themselves_with_the_card_that_they_asked_for(alice: Person, bob: Person) -> None:
    assert ran(alice) == ["2.9.0", "2001", "2001", "/workspace", "3", "1"]
    assert ran(bob) == ["2.9.0", "2002", "2002", "/workspace", "3", "0"]


def test_each_is_refused_the_others_server_and_files(site: Site, alice: Person, bob: Person) -> None:
    assert (alice.reaches("alice"), bob.reaches("bob")) == (200, 200)
    assert (alice.reaches("bob"), bob.reaches("alice")) == (403, 403)
    assert site.person("nobody").get("/user/alice/api/contents").status_code == 403
    secret = "/srv/workspaces/alice/jupyterhub"
    assert on(site.machine, f"stat -c '%u %a' {secret}").strip() == "2001 700"
    channels = bob.connect(bob.kernel())
    other = site.inspected("alice")["NetworkSettings"]["Networks"]["hostwright-hub"]["IPAddress"]
    reach = f"""
import socket
def tried(address, port):
    try:
        socket.create_connection((address, port), 3).close()
        return "open"
    except OSError as error:
        return "closed"
print("REACHED", tried("{other}", 8888), tried("172.30.250.1", 8081), tried("172.30.250.1", 22222))
"""
    line = next(line for line in run_cell(channels, reach).splitlines() if line.startswith("REACHED"))
    assert line.split()[1:] == ["closed", "open", "closed"]


def test_its_card_is_given_once(site: Site, alice: Person) -> None:
    """To nobody else on the hub, and to no workspace."""
    assert alice.reaches_own()
    second = site.person("bob")
    assert second.log_in(PASSWORDS["bob"])
    second.get("/hub/home")
    assert second.session.delete(
        second.url("/hub/api/users/bob/server"), headers={"X-XSRFToken": second.xsrf("/hub/")}, timeout=120
    ).status_code in (202, 204)
    sentence = until(lambda: second.start(gpus=1), "a refusal")
    assert "0 of the 1 GPUs that JupyterHub has here are free, and you asked for 1 (in use by alice)" in sentence
    assert second.start() == ""
    entry = {"user": "bob", "kind": "jupyter", "gpus": [1], "image": images.TENSORFLOW.tag}
    site.declare(containers={"bob-lab": entry})
    done = site.invoke("provision", "--hosts", HOST, "--roles", "workspaces")
    site.declare()
    assert done.returncode != 0
    assert re.search(r"workspace bob-lab wants GPU 1, but GPU-\S+ is reserved by the role jupyterhub", done.stdout)


def test_a_server_whose_container_was_removed_by_hand_is_started_again(site: Site, bob: Person) -> None:
    """jupyterhub#1632: the page said for ever that the server is down."""
    on(site.machine, f"docker rm -f {PREFIX}bob")

    def told() -> bool:
        answer = bob.get("/user/bob/lab")
        assert answer.status_code == 424, f"{answer.status_code} {answer.url}: {answer.text[-1500:]}"
        return True

    until(told, "the hub's page for a server that does not run")
    assert bob.start() == ""


def test_limits_and_rights_are_those_of_workspaces(site: Site, alice: Person) -> None:
    assert alice.reaches_own()
    found = site.inspected("alice")
    limits = found["HostConfig"]
    assert limits["PortBindings"]["8888/tcp"][0]["HostIp"] == "127.0.0.1"
    assert (limits["CapDrop"], limits["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    status = on(site.machine, f"cat /proc/{found['State']['Pid']}/status")
    assert re.search(r"^Uid:\s+2001\s+2001", status, re.MULTILINE)
    assert re.search(r"^CapBnd:\s+0{16}$", status, re.MULTILINE)
    site.succeeds("verify", "--hosts", HOST, "--roles", "jupyterhub")
    if why := why_no_limits(site.machine):
        pytest.skip(f"limits of containers are {why}")
    read = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || :"
    assert str(3 << 30) in on(site.machine, f"docker exec {PREFIX}alice sh -c '{read}'").split()


def test_secrets_are_roots_alone(site: Site) -> None:
    folder = "/var/lib/hostwright/jupyterhub"
    listed = on(site.machine, f"stat -c '%U %a %n' {folder} {folder}/cookie_secret {folder}/jupyterhub.sqlite")
    assert [line.split()[:2] for line in listed.splitlines()] == [["root", "700"], ["root", "600"], ["root", "600"]]
    listening = on(site.machine, "ss -Hltn 'sport = :8081'").split()
    assert [word for word in listening if word.endswith(":8081")] == ["172.30.250.1:8081"]


def test_work_goes_on_while_the_hub_restarts_and_is_provisioned(site: Site, alice: Person) -> None:
    channels = alice.connect(alice.kernel())
    run_cell(channels, "kept = 41")
    started = site.inspected("alice")["State"]["StartedAt"]
    on(site.machine, "systemctl restart hostwright-jupyterhub.service")
    assert run_cell(channels, "print('GOES ON', kept + 1)") == "GOES ON 42\n"  # through the same websocket
    site.succeeds("provision", "--hosts", HOST)
    assert run_cell(channels, "print('STILL', kept + 2)") == "STILL 43\n"
    until(lambda: alice.get("/hub/home").status_code == 200, "the hub")
    assert alice.reaches_own()
    assert site.inspected("alice")["State"]["StartedAt"] == started


def test_servers_are_there_again_after_a_restart_of_docker_and_of_the_host(site: Site, alice: Person) -> None:
    run_cell(alice.connect(alice.kernel()), "open('kept.txt', 'w').write('41')")
    for again in (lambda: on(site.machine, "systemctl restart docker"), site.reboot):
        again()
        until(lambda: alice.reaches_own() and alice.get("/hub/home").status_code == 200, "alice's server")
        assert run_cell(alice.connect(alice.kernel()), "print(open('kept.txt').read())") == "41\n"
        assert "alice" in on(site.machine, "docker ps --format '{{.Names}}' --filter label=hostwright.hub")
    site.succeeds("plan", "--hosts", HOST)


def test_verify_fails_without_the_layer(site: Site) -> None:
    on(site.machine, "systemctl stop hostwright-jupyterhub.service")
    done = site.invoke("verify", "--hosts", HOST, "--roles", "jupyterhub")
    on(site.machine, "systemctl start hostwright-jupyterhub.service")
    assert done.returncode != 0
    until(lambda: site.person("alice").get("/hub/login").status_code == 200, "the hub")


def test_work_of_somebody_who_left_goes_on_and_holds_nobody_up(site: Site, bob: Person) -> None:
    """The hub starts again with a server of somebody it does not know, and leaves it be."""
    channels = bob.connect(bob.kernel())
    run_cell(channels, "kept = 41")
    started = site.inspected("bob")["State"]["StartedAt"]
    site.declare(users={"alice": {"uid": 2001}, "bob": {"uid": 2002, "left": True}})
    done = site.invoke("provision", "--hosts", HOST)
    assert done.returncode == 1
    assert "the server of bob" in done.stdout + done.stderr
    until(lambda: site.person("alice").get("/hub/login").status_code == 200, "the hub")
    assert not site.person("bob").log_in(PASSWORDS["bob"])  # what else was due is done
    assert "/user/bob/" not in on(site.machine, "cat /etc/nginx/hostwright-workspaces.d/jupyterhub.conf")
    on(site.machine, "systemctl restart hostwright-jupyterhub.service")
    until(lambda: site.person("alice").get("/hub/login").status_code == 200, "the hub")
    assert site.inspected("bob")["State"]["StartedAt"] == started
    assert site.inspected("bob")["State"]["Running"]


def test_somebody_who_left_is_gone_with_one_change(site: Site, bob: Person) -> None:
    bob.get("/hub/home")
    site.declare(users={"alice": {"uid": 2001}, "bob": {"uid": 2002, "left": True}})
    site.succeeds("provision", "--hosts", HOST, "--force")
    until(lambda: site.person("alice").get("/hub/login").status_code == 200, "the hub")
    assert f"{PREFIX}bob" not in on(site.machine, "docker ps -a --format '{{.Names}}'")
    assert "/hub/login" in bob.get("/hub/home").url  # the browser that was logged in
    assert not site.person("bob").log_in(PASSWORDS["bob"])
    assert "/hub/login" in site.person("bob").get("/user/bob/api/contents").url
    assert on(site.machine, "stat -c %u /srv/workspaces/bob/jupyterhub").strip() == "2002"


def test_removed_it_leaves_peoples_files_and_the_proxy(site: Site) -> None:
    site.succeeds("remove", "--hosts", HOST, "--roles", "jupyterhub", "--force")
    assert (
        on(site.machine, "docker ps -aq --filter label=hostwright.hub; docker network ls -qf name=hostwright-hub") == ""
    )
    assert "hostwright/jupyterhub" not in on(site.machine, "docker images --format '{{.Repository}}'")
    assert (
        on(site.machine, "ls -d /opt/hostwright-jupyterhub /etc/nginx/hostwright-workspaces.d/* 2>/dev/null || :") == ""
    )
    assert site.person("alice").get("/hub/login").status_code == 404
    assert on(site.machine, "ls /srv/workspaces/alice/jupyterhub/kept.txt").strip()
