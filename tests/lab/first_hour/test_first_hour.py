"""A new user's first hour: a machine with only Python, and the page's commands as printed.

Stand-ins: the package is a wheel in pip's first folder, NVIDIA's files are the lab's, and the page's host has another
address and user. Everything else is as on the page.

The whole page runs with the lab's stack. The page's own stack runs up to the layer that is removed, because no host
here has a card for its wheels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml

from lab import fleet
from lab.config import USER, HostOptions, Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import on
from tests.lab.first_hour import page
from tests.lab.first_hour.desk import Desk, Typed
from tests.lab.ownlab import own_lab
from tests.lab.telling import tell
from tests.lab.trees import KERNEL_PACKAGE, Tree
from tests.unit.support.package import build_wheel, copy_sources

pytestmark = pytest.mark.long
DESK, HOST = "desk01", "gpu01"
LAB, TODAY = "lab", "pytorch-2.14"
HOSTS = {LAB: HostOptions(profile="small"), TODAY: HostOptions(profile="small", distro="trixie")}
HOME = f"/home/{USER}"
SITE, REMOVE, WHOLE = "~/fleet", "hostwright remove gpu01", "hostwright mirror"
KEY = f"{HOME}/.ssh/id_ed25519"
LONGEST_HOUR_S = 3600
DIFFERS = 3  #: exit status of plan, doctor and `remove --check` if something differs
#: depmod's index (left by the lab's headers), dockerd's mode of its directory, the key that the test added, and sudo's
#: lecture mark in the user's home
LEFT_BY_OTHERS = rf"/usr/lib/modules(/.*)?|/var/lib/docker|{HOME}/\.ssh(/.*)?|{HOME}/\.sudo_as_admin_successful"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A terminal host with only Python, and a bare host for each stack."""
    with own_lab("hour") as opened:
        fleet.supply(opened, HOSTS[LAB])
        fleet.up(opened, [DESK], options=HostOptions(profile="small", distro="bookworm"))
        for stack, options in HOSTS.items():
            fleet.up(opened, [machine_of(stack)], options=options)
        on(find_machine(opened, machine_of(TODAY)), KERNEL_PACKAGE)
        yield opened


def machine_of(stack: str) -> str:
    """Return the lab's name of a stack's host, which the page calls gpu01."""
    return f"gpu{list(HOSTS).index(stack) + 1:02}"


@pytest.fixture(scope="module", params=list(HOSTS))
def stack(request: pytest.FixtureRequest) -> str:
    """The stack of the host."""
    return str(request.param)


@pytest.fixture(scope="module")
def host(lab: Lab, stack: str) -> Machine:
    """The bare host."""
    return find_machine(lab, machine_of(stack))


@pytest.fixture(scope="module")
def bare(host: Machine) -> Tree:
    """Tree of the host before the first command."""
    return Tree.of(host)


@pytest.fixture(scope="module")
def desk(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The new user's machine: its key can log in to the host, and pip finds the package."""
    machine, folder = find_machine(lab, DESK), tmp_path_factory.mktemp("desk")
    wheel = build_wheel(copy_sources(folder / "sources"), folder)
    pins = sorted(f"{one.name}=={one.version}\n" for one in distributions() if one.name not in {"hostwright", "pip"})
    (folder / "pins.txt").write_text("".join(pins))
    (folder / "pip.conf").write_text(f"[global]\nfind-links = {HOME}/packages\nconstraint = {HOME}/packages/pins.txt\n")
    key = on(machine, f"runuser -u {USER} -- ssh-keygen -q -t ed25519 -N '' -f {KEY}; cat {KEY}.pub").strip()
    for stack in HOSTS:
        on(find_machine(lab, machine_of(stack)), f"echo '{key}' >>{HOME}/.ssh/authorized_keys")
    with Desk(machine) as opened:
        opened.put(wheel, f"dist/{wheel.name}")
        opened.put(folder / "pins.txt", "packages/pins.txt")
        opened.put(folder / "pip.conf", ".config/pip/pip.conf")
        for file in of_vendor(lab):
            opened.put(file, f"nvidia/{file.name}")
        yield opened


def of_vendor(lab: Lab) -> Iterator[Path]:
    """Return the lab's own files of its stack, which a user downloads from NVIDIA."""
    for artifact in yaml.safe_load(lab.stack.read_text())["artifacts"].values():
        (url, *_) = artifact["urls"]
        if url.startswith("file:"):
            yield Path(url.removeprefix("file://"))


@dataclass
class Hour:
    """All commands of the page as typed, and the host's tree after each complete removal."""

    typed: list[Typed] = field(default_factory=list)
    brought_back: list[Tree] = field(default_factory=list)

    def of(self, verb: str) -> list[Typed]:
        """Return the commands of a verb."""
        return [each for each in self.typed if each.command.startswith(f"hostwright {verb} ")]


@pytest.fixture(scope="module")
def hour(desk: Desk, lab: Lab, host: Machine, stack: str, bare: Tree) -> Hour:
    """The commands of the page, run in order, with another complete removal after those for the whole stack.

    Stops at the first failure.
    """
    done, site = Hour(), SITE if stack == LAB else f"{SITE}-{stack}"
    # as after the user's first login
    assert desk.type(f"ssh-keyscan -t ed25519 {host.address} >>~/.ssh/known_hosts").status == 0
    assert desk.type("cd").status == 0
    commands = [command.replace(SITE, site) for command in page.commands()]
    for command in [*commands, REMOVE] if stack == LAB else commands[: commands.index(WHOLE)]:
        done.typed.append(desk.type(f"{command} --from ~/nvidia" if command == WHOLE else command))
        if done.typed[-1].status not in (0, DIFFERS):
            break
        if command == f"cd {site}":
            desk.write(inventory(host, stack), "inventory/hosts.yml")
            if stack == LAB:
                desk.put(lab.stack, f"{SITE.removeprefix('~/')}/inventory/stacks/lab.yml")
        if command == REMOVE:
            done.brought_back.append(Tree.of(host))
    return done


def inventory(host: Machine, stack: str) -> str:
    """Return the page's inventory for the lab's host; the page's own stack is the site's."""
    said = yaml.safe_load(page.inventory())
    said["all"]["hosts"][HOST] |= {"ansible_host": str(host.address), "ansible_user": USER}
    if stack == LAB:
        said["all"]["hosts"][HOST]["stack"] = LAB
    return yaml.safe_dump(said)


def test_every_command_ends_well_as_it_is_printed(hour: Hour, pytestconfig: pytest.Config):
    tell(pytestconfig, "first hour, seconds and status of each command:")
    for each in hour.typed:
        tell(pytestconfig, f"{each.took_s:7.1f}  {each.status}  {each.command}")
    tell(pytestconfig, f"{sum(each.took_s for each in hour.typed):7.1f}  in all")
    last = hour.typed[-1]
    assert last.status in (0, DIFFERS), f"{last.command}: {last.status}\n{last.seen[-6000:]}"
    assert last.command == REMOVE


def test_what_changes_something_leaves_nothing_to_do(hour: Hour):
    for verb in ("provision", "verify", "remove"):
        statuses = {each.status for each in hour.of(verb) if "--check" not in each.command}
        assert statuses == {0}, verb


def test_the_host_is_brought_back_each_time(hour: Hour, stack: str, bare: Tree):
    """After one layer, and after the whole stack."""
    assert len(hour.brought_back) == (2 if stack == LAB else 1)
    for tree in hour.brought_back:
        assert bare.differences(tree, but=LEFT_BY_OTHERS) == []


def test_it_took_less_than_an_hour(hour: Hour):
    """The limit is the promise of the page's title; the commands need a small part of it."""
    assert sum(each.took_s for each in hour.typed) < LONGEST_HOUR_S
