"""A reinstalled host is refused until a user confirms its new key; only its own known_hosts line changes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostwright.common.quoting import sh
from hostwright.transport.identity.keys import HostKey, generate
from lab import fleet
from lab.config import CHECKOUT, HostOptions, Lab, Machine
from lab.machine import console
from lab.records import find_machine
from tests.lab.conftest import FrontDoor
from tests.lab.ownlab import own_lab

SMALL = HostOptions(profile="small")
HOST, JUMP = "t01", "t02"
KNOWN, REFUSED, DIFFERS = 0, 1, 3


@dataclass(frozen=True)
class Site:
    """An inventory of the lab's hosts with its own known_hosts file."""

    folder: Path
    lab: Lab
    invoke: FrontDoor

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def host(self) -> Machine:
        return find_machine(self.lab, HOST)

    def line(self, name: str, key: HostKey) -> str:
        return f"{find_machine(self.lab, name).address} {key.line}"

    def describe(self, **variables: Any) -> None:
        """Write the inventory; these variables are the host's."""
        everything = yaml.safe_load(self.lab.inventory.read_text())
        group = everything["lab"]
        group["vars"]["hostwright_known_hosts"] = str(self.known_hosts)
        del group["vars"]["stack"]  # the default stack can be planned without vendor files
        group["hosts"][HOST] |= variables
        (self.folder / "hosts.yml").write_text(yaml.safe_dump(everything))

    def run(self, verb: str, *words: str, **environment: str) -> tuple[int, str]:
        """One verb on the host: its exit status, and all that it printed on one line."""
        done = self.invoke(
            verb, "--hosts", HOST, *words, inventory=str(self.folder / "hosts.yml"), COLUMNS="500", **environment
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.fixture(scope="module")
def trust_lab() -> Iterator[Lab]:
    with own_lab("trust") as opened:
        fleet.up(opened, [HOST, JUMP], options=SMALL)
        yield opened


def key_of(machine: Machine) -> HostKey:
    """Return the host's key, read on its console."""
    return HostKey.parse(console(machine, "cat", "/etc/ssh/ssh_host_ed25519_key.pub"))


@pytest.fixture
def site(trust_lab: Lab, tmp_path: Path) -> Site:
    """A site with known keys of the host before its reinstallation, of the jump host, and of other hosts."""
    site = Site(tmp_path, trust_lab, FrontDoor(trust_lab))
    old, other = key_of(site.host), generate().public
    lines = [
        f"@revoked * {other.line}",
        f"{site.host.address},gpu99 {old.line} of old",
        site.line(JUMP, key_of(find_machine(trust_lab, JUMP))),
        f"gpu* {other.line}",
    ]
    site.known_hosts.write_text("".join(f"{line}\n" for line in lines))
    fleet.reset(trust_lab, [HOST])
    assert key_of(site.host) != old
    site.describe()
    return site


def expect_trusted(site: Site, before: str, **environment: str) -> None:
    """Check that only the host's own name left its old line, that its new key was added, and that a login works."""
    kept = before.replace(f"{site.host.address},gpu99 ", "gpu99 ")
    assert site.known_hosts.read_text() == f"{kept}{site.line(HOST, key_of(site.host))}\n"
    status, said = site.run("plan", **environment)
    assert status == DIFFERS, said


def test_only_the_right_fingerprint_lets_a_new_key_in(site: Site) -> None:
    before = site.known_hosts.read_text()
    old, new, wrong = HostKey.parse(before.splitlines()[1].split(" ", 1)[1]), key_of(site.host), generate().public
    status, said = site.run("plan")
    assert status == REFUSED
    assert all(part in said for part in (old.fingerprint, new.fingerprint, f"invoke trust --hosts {HOST}"))
    for words in ([], ["--fingerprint", wrong.fingerprint]):
        status, said = site.run("trust", *words)
        assert status == REFUSED
        assert old.fingerprint in said
        assert new.fingerprint in said
        assert site.known_hosts.read_text() == before
    shown = console(site.host, "ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    status, said = site.run("trust", "--fingerprint", shown)
    assert status == KNOWN, said
    expect_trusted(site, before)
    status, said = site.run("trust")
    assert (status, f"{HOST} already known" in said) == (KNOWN, True), said


def test_only_the_hosts_own_console_vouches_for_a_new_key(site: Site) -> None:
    before = site.known_hosts.read_text()
    command = sh("cd %s && %s -m lab host-keys --name %s --hosts ", CHECKOUT, sys.executable, site.lab.name)
    site.describe(hostwright_host_keys=command + JUMP)
    status, said = site.run("trust")
    assert status == REFUSED
    assert key_of(site.host).fingerprint in said
    assert site.known_hosts.read_text() == before
    site.describe(hostwright_host_keys=f'{command}"$HOSTWRIGHT_HOST"')
    status, said = site.run("trust", "--json")
    assert status == KNOWN, said
    [told] = json.loads(said)["hosts"]
    assert (told["result"], told["files"]) == ("trusted", [str(site.known_hosts)])
    expect_trusted(site, before)


def test_the_key_is_asked_for_over_the_jump_host(site: Site) -> None:
    """The jump host must have its known key; an error there names the jump host."""
    before = site.known_hosts.read_text()
    jump = find_machine(site.lab, JUMP)
    key = site.folder / ".ssh" / "id_ed25519"  # ssh reads the account's ssh_config, independent of HOME
    key.parent.mkdir()
    key.write_bytes(Path(site.lab.private_key).read_bytes())
    key.chmod(0o600)
    site.describe(ansible_ssh_common_args=f"-J ops@{jump.address}")
    wrong = before.replace(site.line(JUMP, key_of(jump)), site.line(JUMP, key_of(site.host)))
    right = key_of(site.host).fingerprint
    site.known_hosts.write_text(wrong)
    status, said = site.run("trust", "--fingerprint", right, HOME=str(site.folder))
    assert status == REFUSED
    assert "its jump host: the host key of" in said
    assert f"ssh-keygen -R {jump.address}" in said
    assert site.known_hosts.read_text() == wrong
    site.known_hosts.write_text(before)
    status, said = site.run("trust", "--fingerprint", right, HOME=str(site.folder))
    assert status == KNOWN, said
    expect_trusted(site, before, HOME=str(site.folder))
