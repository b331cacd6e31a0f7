"""The benchmark's hosts in the lab: clones of a provisioned host, and newly installed hosts."""

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
FIRST = "first"  #: name of the provisioned lab host from which all other hosts are cloned
SNAPSHOT = "green"
#: options of lab hosts. The profile ``small`` has placeholders for large libraries, which saves minutes.
OPTIONS = HostOptions(profile="small")
#: options of bare lab hosts, with a separate disk. On a shared filesystem, ext4 searches for free inodes for seconds.
BARE = replace(OPTIONS, disk_bytes=32 << 30)
PROVISION_S = 1200.0
#: packages that other tools need on a host. Without python3-apt, Ansible would install the package and change the host.
OF_PEERS = "python3-apt rsync"

#: shell command that waits for the end of the boot, because background work would disturb a measurement
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
    """Lab of the benchmark, and access to its hosts."""

    lab: Lab
    desk: Desk
    state: Path  #: state directory of the controller (``HOSTWRIGHT_STATE``)
    work: Path  #: directory for the benchmark's files, deleted at the end

    @property
    def inventory(self) -> Path:
        """Directory of the lab's inventory and stacks."""
        return self.lab.inventory.parent

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for every ``hostwright`` command."""
        return {"HOSTWRIGHT_STATE": str(self.state), "HOSTWRIGHT_YES": "1"}

    def clones(self, count: int) -> tuple[str, ...]:
        """Start ``count`` provisioned hosts; return the host names."""
        names = tuple(f"gpu{number:02}" for number in range(1, count + 1))
        fleet.up(self.lab, names, snapshot=read_snapshots(self.lab)[SNAPSHOT])
        _each(self.machines(names), lambda machine: console(machine, "sh", "-c", SETTLE))
        return names

    def bare(self, count: int) -> tuple[str, ...]:
        """Create ``count`` newly installed hosts; return the host names."""
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
        """Remove the hosts ``names`` from the lab."""
        fleet.remove(self.lab, [name for name in names if name in read_records(self.lab)])

    def machines(self, names: Sequence[str]) -> list[Machine]:
        """Return the lab machines with these names."""
        return [find_machine(self.lab, name) for name in names]

    def ssh_config(self, names: Sequence[str]) -> Path:
        """Write an ssh_config for the hosts ``names`` with the fastest key exchange; return its path."""
        text = "".join(SSH_CONFIG.format(name=one.name, address=one.address) for one in self.machines(names))
        common = {"user": USER, "key": self.lab.private_key, "known_hosts": self.lab.known_hosts}
        path = self.work / f"ssh_config-{names[0]}-{len(names)}"
        path.write_text(text + SSH_ALL.format(**common))
        return path

    def hostwright(self, *words: str) -> str:
        """Run ``hostwright`` on the lab's inventory; return the output. Raises ``LabError`` if the command fails."""
        verb, *rest = words
        return run_own([verb, "--inventory", str(self.inventory), *rest], self.environment)

    def look(self, *words: str) -> str:
        """Run ``hostwright`` on the lab's inventory; return the output. Exit status 3 (differences) is not an error."""
        verb, *rest = words
        return run_own([verb, "--inventory", str(self.inventory), *rest], self.environment, statuses=(0, 3))


def run_own(
    words: Sequence[str], environment: dict[str, str], *, netns: Path | None = None, statuses: Sequence[int] = (0,)
) -> str:
    """Run ``hostwright``; return the output. Raises ``LabError`` for an exit status outside ``statuses``."""
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
    """Create the lab with a snapshot of a provisioned host, and the controller's network namespace."""
    take_down()
    lab = open_lab(NAME)
    fleet.supply(lab, OPTIONS)
    frozen = SNAPSHOT in read_snapshots(lab)
    if not frozen:
        fleet.up(lab, [FIRST], options=OPTIONS)
    hosts = Hosts(lab, set_up(lab), work / "state", work)
    hosts.hostwright("mirror", "--stack", STACK)
    if not frozen:
        hosts.hostwright("provision", "--hosts", FIRST)
        console(find_machine(lab, FIRST), "sh", "-c", f"apt-get -qy install {OF_PEERS} >/dev/null")
        snapshots.freeze(find_machine(lab, FIRST), SNAPSHOT)
    return hosts


def take_down() -> None:
    """Remove the lab, unless ``HOSTWRIGHT_KEEP_LAB=1``."""
    if not kept():
        fleet.down(open_lab(NAME))


def _each(machines: Sequence[Machine], action: Callable[[Machine], object]) -> None:
    for machine in machines:
        action(machine)
