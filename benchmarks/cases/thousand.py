"""Case: one controller plans and audits a thousand hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.cases.ours import AUDIT, PLAN, ours
from benchmarks.figures.goals import Goal
from benchmarks.figures.statistics import Figures, divided
from benchmarks.measuring.command import Command
from benchmarks.peers.tools import AT_ONCE, SSH
from benchmarks.places.places import Places
from benchmarks.places.replay import Replaying

NAME = "thousand"
TITLE = "1,000 hosts from one controller"
ABOUT = """\
Loopback hosts: real sshds, real logins and channels, behind which the recorded answers of a provisioned lab host
are replayed. The hosts work on the controller's own two cores, so the wall is that of both; the controller's
processor time and memory are its own. Memory is the sum over all its processes. Flat means that a host costs as
much between 100 and 1,000 hosts as between 1 and 100. 1,000 hosts are measured once."""
BOUND_S = 600.0
TABLE = Table(traffic=False)
SIZES = (1, 100, 1000)
COSTS = (
    Cost(SSH, 1, 0.3, rounds=2), Cost(PLAN, 1, 3.4, rounds=2), Cost(AUDIT, 1, 2.1, rounds=2),
    Cost(SSH, 100, 2.9, rounds=2), Cost(PLAN, 100, 6.2, rounds=2), Cost(AUDIT, 100, 6.7, rounds=2),
    Cost(PLAN, 1000, 42, rounds=1), Cost(AUDIT, 1000, 56, rounds=1),
)  # fmt: skip
REST_S = 85.0
#: goals: maximum memory in MB and maximum ``flatness`` (our choice). ``flatness`` varies by 10 %.
LIMIT_MB, FLAT = 250, 1.1


@dataclass(frozen=True, slots=True)
class Ready:
    """Simulated hosts, and inventories by number of hosts."""

    place: Replaying
    inventories: dict[int, Path]
    environment: dict[str, str]


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Create an inventory for each number of hosts."""
    place = places.replaying()
    inventories = {size: place.inventory(f"thousand-{size}", size) for size in wanted.of(SIZES)}
    yield Ready(place, inventories, places.hosts().environment)


def check(ready: Ready) -> str:
    """Return the requests without a recorded answer; empty if every request was answered."""
    return ready.place.unknown()


def facts(ready: Ready) -> dict[str, str]:
    """Return a description of the simulated hosts."""
    return {"hosts": "loopback hosts of a network namespace; 4 sshds; answers recorded from one provisioned lab host"}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands for all numbers of hosts, smallest number first."""
    return [command for size in ready.inventories for command in at(ready, size)]


def at(ready: Ready, size: int) -> list[Command]:
    """Return the commands of OpenSSH and of Hostwright (plan and audit) for ``size`` hosts."""
    words = (
        "xargs",
        "-P",
        str(AT_ONCE),
        "-I",
        "@HOST@",
        "ssh",
        "-F",
        str(ready.place.ssh_config(2301)),
        "@HOST@",
        "true",
    )
    hosts = "".join(f"{ready.place.address(number)}\n" for number in range(1, size + 1))
    found = [
        Command(SSH, size, words, stdin=hosts.encode()),
        *(
            ours(verb, size, "--inventory", str(ready.inventories[size]), "--hosts", "all", env=ready.environment)
            for verb in (PLAN, AUDIT)
        ),
    ]
    return [replace(command, netns=ready.place.netns) for command in found]


def memory_mb(contender: str) -> Callable[[Figures], float]:
    """Return a function for a tool's memory on the controller in MB, with 1,000 hosts."""
    return lambda found: found.median(contender, 1000, "rss_bytes") / 1e6


def flatness(contender: str) -> Callable[[Figures], float]:
    """Return a function for the processor time per added host above 100 hosts, divided by the time below 100 hosts."""
    return lambda found: divided(
        found.per_added(contender, 100, 1000, "cpu_s"), found.per_added(contender, 1, 100, "cpu_s")
    )


def goals() -> Sequence[Goal]:
    """Return the goals for the controller's memory, and for constant processor time per host."""
    return (
        *(
            Goal(f"1,000 hosts: memory of the controller, {verb.split()[1]}", LIMIT_MB, memory_mb(verb), " MB")
            for verb in (PLAN, AUDIT)
        ),
        *(
            Goal(f"CPU for each added host, 100 to 1,000 / 1 to 100: {verb.split()[1]}", FLAT, flatness(verb), "×")
            for verb in (PLAN, AUDIT)
        ),
    )


PLOTTED = (SSH, PLAN, AUDIT)
