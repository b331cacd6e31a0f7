"""The benchmark's hosts in the lab: clones of a provisioned host, and newly installed hosts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from benchmarks.measuring.command import PROJECT
from benchmarks.measuring.machine import own_program
from benchmarks.places.desk import Desk, set_up
from hostwright.common.errors import LabError
from lab import fleet, snapshots, stack
from lab.config import USER, HostOptions, Lab, Machine
from lab.machine import console
from lab.records import find_machine, open_lab, read_records, read_snapshots
from tests.lab.ownlab import kept

NAME = "bench"
STACK = "lab"
#: bytes of a bare lab host's separate disk. On a shared filesystem, ext4 searches for free inodes for seconds.
BARE_BYTES = 32 << 30
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
class Kind:
    """Kind of lab hosts: their stack, and how the lab installs them."""

    options: HostOptions
    prefix: str = ""  #: prefix of the names of hosts and of the snapshot
    published: str = ""  #: name of the published stack that the lab's stack extends; empty: the stack is ``lab``
    role: str = ""  #: role of that stack's framework, whose wheels the controller sends
    python: str = ""  #: version of that framework's Python

    @property
    def stack(self) -> str:
        """Name of the hosts' stack."""
        return f"{STACK}-{self.published}" if self.published else STACK

    @property
    def first(self) -> str:
        """Name of the provisioned lab host from which all clones are made."""
        return f"{self.prefix}first"

    @property
    def snapshot(self) -> str:
        """Name of the snapshot of a provisioned host."""
        return f"{self.prefix}green"

    def names(self, what: str, count: int) -> tuple[str, ...]:
        """Return the names of ``count`` hosts."""
        return tuple(f"{self.prefix}{what}{number:02}" for number in range(1, count + 1))


#: The profile ``small`` has placeholders for large libraries, which saves minutes.
LAB = Kind(HostOptions(profile="small"))
TODAY = Kind(HostOptions(profile="small", distro="bookworm"), "today-", "pytorch-2.14", "pytorch", "3.11")


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

    def supply(self, kind: Kind = LAB) -> None:
        """Write this kind's stack and, if missing, create the snapshot of a provisioned host, which takes minutes."""
        fleet.supply(self.lab, kind.options)
        if kind.published:
            stack.write_published(self.lab.stack, kind.published, kind.role, kind.python)
        if kind.snapshot in read_snapshots(self.lab):
            return
        fleet.up(self.lab, [kind.first], options=kind.options)
        self._describe(kind, [kind.first])
        self.hostwright("mirror", "--stack", kind.stack)
        self.hostwright("provision", "--hosts", kind.first)
        first = find_machine(self.lab, kind.first)
        console(first, "sh", "-c", f"apt-get -qy install {OF_PEERS} >/dev/null")
        snapshots.freeze(first, kind.snapshot)
        self.remove([kind.first])

    def clones(self, count: int, kind: Kind = LAB) -> tuple[str, ...]:
        """Start ``count`` provisioned hosts; return the host names."""
        names = kind.names("gpu", count)
        fleet.up(self.lab, names, snapshot=read_snapshots(self.lab)[kind.snapshot])
        self._describe(kind, names)
        _each(self.machines(names), lambda machine: console(machine, "sh", "-c", SETTLE))
        return names

    def bare(self, count: int, kind: Kind = LAB) -> tuple[str, ...]:
        """Create ``count`` newly installed hosts; return the host names."""
        names = kind.names("bare", count)
        known = read_records(self.lab)
        old = [name for name in names if name in known]
        if old:
            fleet.reset(self.lab, old)
        if len(old) < len(names):
            options = replace(kind.options, disk_bytes=BARE_BYTES)
            fleet.up(self.lab, [name for name in names if name not in known], options=options)
        self._describe(kind, names)
        _each(self.machines(names), lambda machine: console(machine, "sh", "-c", SETTLE))
        return names

    def remove(self, names: Sequence[str]) -> None:
        """Remove the hosts ``names`` from the lab."""
        fleet.remove(self.lab, [name for name in names if name in read_records(self.lab)])
        for name in names:
            self._variables(name).unlink(missing_ok=True)

    def _describe(self, kind: Kind, names: Sequence[str]) -> None:
        """Write the inventory variables of hosts that do not have the stack ``lab``."""
        variables = {"stack": kind.stack, f"{kind.role}_wheels_from": "mirror"}
        for name in names if kind.published else ():
            self._variables(name).parent.mkdir(exist_ok=True)
            self._variables(name).write_text(yaml.safe_dump(variables))

    def _variables(self, name: str) -> Path:
        return self.inventory / "host_vars" / f"{name}.yml"

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
    fleet.prepare(lab, LAB.options)  # installs the programs with which the namespace is made
    hosts = Hosts(lab, set_up(lab), work / "state", work)
    hosts.supply()
    return hosts


def take_down() -> None:
    """Remove the lab, unless ``HOSTWRIGHT_KEEP_LAB=1``."""
    if not kept():
        fleet.down(open_lab(NAME))


def _each(machines: Sequence[Machine], action: Callable[[Machine], object]) -> None:
    for machine in machines:
        action(machine)
