"""The lab of the benchmark: hosts that have the whole stack, as clones of one that was provisioned, and bare ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.measuring.command import PROJECT
from benchmarks.measuring.machine import own_program
from benchmarks.places.desk import Desk, set_up
from hostwright.common.errors import LabError
from lab import fleet, snapshots
from lab.config import USER, HostOptions, Lab, Machine
from lab.machine import console
from lab.records import find_machine, open_lab, read_records, read_snapshots
from tests.lab.ownlab import kept

NAME = "bench"
STACK = "lab"
FIRST = "first"  #: the host that is provisioned, and of which the others are clones
SNAPSHOT = "green"
OPTIONS = HostOptions(profile="small")  #: the large math libraries are stand-ins: minutes less for every contender
#: A disk of its own, as a machine has: on a filesystem of which others have just deleted many files, ext4 takes seconds
#: of processor time to find inodes for new ones.
BARE = replace(OPTIONS, disk_bytes=32 << 30)
PROVISION_S = 1200.0
#: What peers need on a host, beside the stack: Ansible's module `apt` would install the first by itself where it is
#: missing, and be no run without a change.
OF_PEERS = "python3-apt rsync"

#: What a first boot still does is over, so that no host works on its own while others are measured.
SETTLE = "systemctl is-system-running --wait; sync"

SSH_CONFIG = """\
Host {name}
 HostName {address}
"""
SSH_ALL = """\
Host *
 User {user}
 IdentityFile {key}
 IdentitiesOnly yes
 UserKnownHostsFile {known_hosts}
 GlobalKnownHostsFile none
 StrictHostKeyChecking yes
 KexAlgorithms curve25519-sha256
 BatchMode yes
 ConnectTimeout 30
"""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The lab, and what reaches its hosts."""

    lab: Lab
    desk: Desk
    state: Path  #: of the controller: runs, audits, caches; ``HOSTWRIGHT_STATE``
    work: Path  #: files of the benchmark, gone at its end

    @property
    def inventory(self) -> Path:
        """The directory of the lab's inventory and stacks."""
        return self.lab.inventory.parent

    @property
    def environment(self) -> dict[str, str]:
        """Of every ``hostwright`` that is run."""
        return {"HOSTWRIGHT_STATE": str(self.state), "HOSTWRIGHT_YES": "1"}

    def clones(self, count: int) -> tuple[str, ...]:
        """The names of this many provisioned hosts, which run."""
        names = tuple(f"gpu{number:02}" for number in range(1, count + 1))
        fleet.up(self.lab, names, snapshot=read_snapshots(self.lab)[SNAPSHOT])
        _each(self.machines(names), lambda machine: console(machine, "sh", "-c", SETTLE))
        return names

    def bare(self, count: int) -> tuple[str, ...]:
        """The names of this many hosts, installed a moment ago, with nothing on them."""
        names = tuple(f"bare{number:02}" for number in range(1, count + 1))
        known = read_records(self.lab)
        old = [name for name in names if name in known]
        if old:
            fleet.reset(self.lab, old)
        if len(old) < len(names):
            fleet.up(self.lab, [name for name in names if name not in known], options=BARE)
        _each(self.machines(names), lambda machine: console(machine, "sh", "-c", SETTLE))
        return names

    def remove(self, names: Sequence[str]) -> None:
        """Take hosts away, for the disk and memory that they use."""
        fleet.remove(self.lab, [name for name in names if name in read_records(self.lab)])

    def machines(self, names: Sequence[str]) -> list[Machine]:
        """Hosts as the lab has them."""
        return [find_machine(self.lab, name) for name in names]

    def ssh_config(self, names: Sequence[str]) -> Path:
        """A configuration of OpenSSH for these hosts and nothing else: keys checked, the cheapest key exchange."""
        text = "".join(SSH_CONFIG.format(name=one.name, address=one.address) for one in self.machines(names))
        common = {"user": USER, "key": self.lab.private_key, "known_hosts": self.lab.known_hosts}
        path = self.work / f"ssh_config-{names[0]}-{len(names)}"
        path.write_text(text + SSH_ALL.format(**common))
        return path

    def hostwright(self, *words: str) -> str:
        """Run a verb that is not measured; its standard output. Raises ``LabError`` if it does not end well."""
        verb, *rest = words
        return run_own([verb, "--inventory", str(self.inventory), *rest], self.environment)

    def look(self, *words: str) -> str:
        """The same of a verb that also ends with 3, where something differs."""
        verb, *rest = words
        return run_own([verb, "--inventory", str(self.inventory), *rest], self.environment, statuses=(0, 3))


def run_own(
    words: Sequence[str], environment: dict[str, str], *, netns: Path | None = None, statuses: Sequence[int] = (0,)
) -> str:
    """``hostwright`` with these words; its standard output. Raises ``LabError`` for another status than these."""
    enter = ["nsenter", f"--net={netns}", "--"] if netns else []
    done = subprocess.run(
        [*enter, own_program("hostwright"), *words], cwd=PROJECT, env={**os.environ, **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROVISION_S, check=False,
    )  # fmt: skip
    if done.returncode not in statuses:
        ends = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        raise LabError(f"hostwright {' '.join(words)} ended with {done.returncode}:\n{ends}")
    return done.stdout


def make(work: Path) -> Hosts:
    """The lab with one host that is provisioned and frozen, and the desk. ``take_down`` removes all of it."""
    take_down()
    lab = open_lab(NAME)
    fleet.supply(lab, OPTIONS)
    frozen = SNAPSHOT in read_snapshots(lab)
    if not frozen:
        fleet.up(lab, [FIRST], options=OPTIONS)  # and with it the lab's inventory
    hosts = Hosts(lab, set_up(lab), work / "state", work)
    hosts.hostwright("mirror", "--stack", STACK)
    if not frozen:
        hosts.hostwright("provision", "--hosts", FIRST)
        console(find_machine(lab, FIRST), "sh", "-c", f"apt-get -qy install {OF_PEERS} >/dev/null")
        snapshots.freeze(find_machine(lab, FIRST), SNAPSHOT)
    return hosts


def take_down() -> None:
    """Remove the lab, also what a run that was killed left of it; with ``HOSTWRIGHT_KEEP_LAB=1`` it stays."""
    if not kept():
        fleet.down(open_lab(NAME))


def _each(machines: Sequence[Machine], action: Callable[[Machine], object]) -> None:
    for machine in machines:
        action(machine)
