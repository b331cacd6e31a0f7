"""Case: ``hostwright rebuild`` of a host that lost its Python environment and has a new host key."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command
from benchmarks.measuring.machine import own_program
from benchmarks.measuring.measure import HOST_CPU
from benchmarks.places.hosts import Hosts
from benchmarks.places.places import Places
from hostwright.common.quoting import sh
from lab.machine import console

NAME = "rebuild"
TITLE = "Rebuild of a host without its environment, with a new host key"
ABOUT = """\
A clone of the provisioned lab host, whose TensorFlow environment was deleted and whose host keys were made anew.
`hostwright rebuild` diagnoses the host, accepts the new key that the host's console confirms, repairs what differs from
the stack and verifies every layer. No other tool does the same, so nothing is beside it."""
BOUND_S = 240.0
TABLE = Table(extra={HOST_CPU: "CPU of the hosts, s"})
SIZES = (1,)
REBUILD = "hostwright rebuild"
COSTS = (Cost(REBUILD, 1, 35, rounds=1),)
REST_S = 5.0  #: estimated seconds of the unmeasured steps. The case ``plan`` has already created the hosts.
BREAK = """\
rm -rf "$(readlink -f /opt/tensorflow-2.9)"
rm /etc/ssh/ssh_host_*
ssh-keygen -qA
systemctl restart ssh
"""


@dataclass(frozen=True, slots=True)
class Ready:
    """The hosts that the case breaks and rebuilds."""

    hosts: Hosts
    names: tuple[str, ...]
    sizes: tuple[int, ...]


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Start as many clones of the lab's provisioned host as the case needs."""
    hosts, sizes = places.hosts(), wanted.of(SIZES)
    names = hosts.clones(max(sizes))
    yield Ready(hosts, names, sizes)
    hosts.remove(names)  # known_hosts has wrong keys for a host that was not rebuilt


def check(ready: Ready) -> str:
    """Return an empty text, because a rebuild verifies the host."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return the parts of the stack that are small stand-ins for the vendor's software."""
    return {"stack": "the lab's small profile: the driver and the large libraries are stand-ins, TensorFlow is real"}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the rebuild command for each number of hosts."""
    return [rebuild(ready, ready.names[:size]) for size in ready.sizes]


def rebuild(ready: Ready, names: Sequence[str]) -> Command:
    """Return a command that rebuilds the hosts ``names``. An unmeasured preparation breaks the hosts."""
    machines = ready.hosts.machines(names)

    def before() -> None:
        for machine in machines:
            console(machine, "sh", "-ec", BREAK)

    keys = sh("%s -m lab host-keys --name %s", sys.executable, ready.hosts.lab.name) + ' --hosts "$HOSTWRIGHT_HOST"'
    chosen = ("--inventory", str(ready.hosts.inventory), "--hosts", ",".join(names))
    words = ("rebuild", *chosen, "--var", f"hostwright_host_keys={keys}")
    return Command(
        REBUILD, len(names), (own_program("hostwright"), *words), env=ready.hosts.environment, before=before,
        hosts=tuple(machine.cgroup for machine in machines),
    )  # fmt: skip


def goals() -> Sequence[Goal]:
    """Return the goal for the wall time of a rebuild."""
    return (Goal("1 host: wall of the rebuild", 60, lambda found: found.median(REBUILD, 1, "wall_s"), " s"),)


PLOTTED = (REBUILD,)
