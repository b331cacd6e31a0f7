"""One host after the other in a lab of their own, and what every verb printed on each."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostwright.fleet import Fleet
from lab import fleet as lab_fleet
from lab.config import USER, Lab, Machine
from lab.programs import run
from lab.records import find_machine
from tests.lab.audit.by_hand import download, type_all
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.lab.trees import Tree
from tests.past.hosts import DERIVED, IPV6, PASTS, Past

SHOWN = 3000  #: characters of what a verb printed


def pytest_configure() -> None:
    """The lab makes network namespaces and boots hosts."""
    if os.geteuid() != 0:
        raise pytest.UsageError("hosts with a past need root: say `make past`, which uses sudo")


@dataclass(frozen=True)
class Taken:
    """What the stack takes the place of: what came with a driver, and the packages that go with it, by dpkg's lists."""

    brought: frozenset[str] = frozenset()  #: paths that came or changed when the driver did
    rows: frozenset[str] = frozenset()  #: likewise what dpkg and others said
    lists: dict[str, frozenset[str]] = field(default_factory=dict)  #: package → its files, as dpkg has them

    def has(self, line: str, past: Past) -> bool:
        """Whether a difference is one of these, or follows from them."""
        path, _, _ = line.partition(": ")
        if path in {"gone", "come"}:
            row = line.partition(": ")[2]
            return row in self.rows or row.removeprefix("manual ").split(" ")[0].partition(":")[0] in past.goes
        went = any(path in self.lists.get(name, ()) for name in past.goes)
        return went or path in self.brought or bool(re.fullmatch(f"{DERIVED}|{past.taken}", path))


@dataclass
class Story:
    """A host with a past, and the verbs on it; each is run once and what it printed is kept."""

    past: Past
    machine: Machine
    invoke: FrontDoor
    inventory: Path
    before: Tree
    taken: Taken
    done: dict[tuple[str, ...], subprocess.CompletedProcess[str]] = field(default_factory=dict)

    def run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb on the host; what it printed is shown."""
        done = self.invoke(verb, "--hosts", self.past.host, *words, inventory=str(self.inventory))
        print(f"\n$ invoke {verb} --hosts {self.past.host} {' '.join(words)}: status {done.returncode}")
        print(done.stdout[-SHOWN:], done.stderr[-SHOWN:])
        return done

    def once(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb, or return how it went when it was run before."""
        if words not in self.done:
            self.done[words] = self.run(*words)
        return self.done[words]

    def host(self, *words: str) -> Any:
        """What a verb says of the host with ``--json``."""
        (found,) = json.loads(self.once(*words, "--json").stdout)["hosts"]
        return found


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab in which no host is yet."""
    with own_lab("past") as opened:
        lab_fleet.supply(opened, SMALL)
        yield opened


@pytest.fixture(scope="session", params=PASTS, ids=lambda past: past.host)
def story(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Story]:
    """A host, made what its past made it."""
    past: Past = request.param
    lab_fleet.up(lab, [past.host], options=past.options)
    machine, invoke = find_machine(lab, past.host), FrontDoor(lab)
    mirrored = invoke("mirror", "--stack", "lab")
    assert mirrored.returncode == 0, mirrored.stderr
    on(machine, past.script)
    brought: list[str] = []
    if past.typed:
        download(machine, Fleet.load(lab.inventory.parent).targets(past.host)[0].stack)
    if isinstance(past.driver, str):
        brought = watched(machine, lambda: on(machine, str(past.driver)))
    for line in past.typed:
        step = partial(type_all, machine, (line,))
        brought += watched(machine, step) if line in past.driver else step() or []
    on(machine, f"runuser --login {USER} --command true")  # what a login alone leaves there
    inventory = over_ipv6(lab, machine) if past.ipv6 else lab.inventory.parent
    rows = frozenset(line.partition(": ")[2] for line in brought if not line.startswith("/"))
    paths = frozenset(line.partition(": ")[0] for line in brought if line.startswith("/"))
    yield Story(past, machine, invoke, inventory, Tree.of(machine), Taken(paths, rows, lists(machine)))
    lab_fleet.remove(lab, [past.host])


def watched(machine: Machine, step: Callable[[], object]) -> list[str]:
    """What a step changes on a host."""
    before = Tree.of(machine)
    step()
    return before.differences(Tree.of(machine))


def lists(machine: Machine) -> dict[str, frozenset[str]]:
    """The files of each package, as dpkg lists them, in the real directories of a host with a merged /usr."""
    files: dict[str, set[str]] = {}
    for line in on(machine, "cd /var/lib/dpkg/info; grep -H ^/ *.list").splitlines():
        name, _, path = line.partition(".list:")
        files.setdefault(name.partition(":")[0], set()).add(re.sub(r"^/(bin|sbin|lib|lib64)/", r"/usr/\1/", path))
    return {name: frozenset(paths) for name, paths in files.items()}


def over_ipv6(lab: Lab, machine: Machine) -> Path:
    """An inventory that reaches the host at an IPv6 address; returns its folder."""
    gateway, address = (IPV6.format(slot=lab.slot, index=index) for index in (1, 2))
    run(["ip", "-6", "address", "replace", f"{gateway}/64", "dev", lab.bridge, "nodad"])
    on(machine, f"ip -6 address replace {address}/64 dev host0 nodad")
    folder = lab.state / "inventory-ipv6"
    folder.mkdir(exist_ok=True)
    if not (folder / "stacks").exists():
        (folder / "stacks").symlink_to(lab.inventory.parent / "stacks")
    known = lab.state / "known_hosts-ipv6"
    former = lab.known_hosts.read_text()
    known.write_text(former.replace(f"{machine.address},", f"{machine.address},{address},"))
    hosts = yaml.safe_load(lab.inventory.read_text())
    hosts["lab"]["hosts"][machine.name]["ansible_host"] = address
    hosts["lab"]["vars"]["hostwright_known_hosts"] = str(known)
    (folder / "lab.yml").write_text(yaml.safe_dump(hosts))
    return folder
