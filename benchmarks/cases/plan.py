"""Hosts that are as desired, looked at: what most runs of most days do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cases.case import Table, Wanted
from benchmarks.cases.ours import AUDIT, PLAN, PROBES, ours, probe_script
from benchmarks.figures.goals import Goal
from benchmarks.figures.statistics import divided
from benchmarks.measuring.command import Command
from benchmarks.peers import files, tools
from benchmarks.peers.tools import ANSIBLE, HERE, MITOGEN, PYINFRA, SSH, Tools
from benchmarks.places.hosts import Hosts
from benchmarks.places.places import Places
from benchmarks.places.replay import channels

NAME = "plan"
TITLE = "All-green plan and audit of the whole stack"
ABOUT = """\
Clones of one provisioned lab host: nothing differs from the stack. `hostwright plan` and `audit`, beside the same
work written for pyinfra and Ansible (about 60 tasks: files, packages and their holds, units, links, the virtual
environment), beside `ssh HOST true` with 32 clients at a time, and beside the probe program that a plan sends,
piped into `ssh` with its answers thrown away. Every run of a tool must find nothing to change. Ansible is measured
up to 10 hosts, in two rounds; pyinfra runs with `-y`, which looks once."""
BOUND_S = 1500.0
TABLE = Table()
SIZES = (1, 10, 24)
MOST_OF_ANSIBLE = 10
ROUNDS_OF_ANSIBLE = {1: 2}  #: by the number of hosts; one round of ten takes minutes
SITE = HERE / "ansible/site.yml"


@dataclass(frozen=True, slots=True)
class Ready:
    """The hosts, and what the contenders need."""

    hosts: Hosts
    names: tuple[str, ...]
    variables: dict[str, str]
    sent: list[tuple[bytes, bytes]]
    folder: Path
    sizes: tuple[int, ...]

    def tools(self, size: int) -> Tools:
        """The peers on the first hosts."""
        folder = self.folder / str(size)
        folder.mkdir(exist_ok=True)
        return tools.of(self.hosts, self.names[:size], self.variables, folder)


def estimate_s(wanted: Wanted) -> float:
    """From the figures of two quiet cores: a second for each host and round, and Ansible."""
    sizes = wanted.of(SIZES)
    slow = sum(2 * (20 + 8 * size) * rounds_of_ansible(size) for size in sizes if size <= MOST_OF_ANSIBLE)
    return wanted.rounds * sum(10 + 2 * size for size in sizes) + slow


def rounds_of_ansible(size: int) -> int:
    """How often Ansible is measured with so many hosts."""
    return ROUNDS_OF_ANSIBLE.get(size, 1)


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """As many clones as the largest size needs."""
    hosts, folder = places.hosts(), places.folder(NAME)
    sizes = wanted.of(SIZES)
    names = hosts.clones(max(sizes))
    at_hand = places.folder("at-hand")
    yield Ready(hosts, names, files.lay_out(hosts, names[0], at_hand), channels(hosts, folder), folder, sizes)


def check(ready: Ready) -> str:
    """Empty: each contender's own check finds nothing to change on these hosts, or its samples do not count."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """How large the program is."""
    sent = sum(len(sent) for _, sent in ready.sent)
    return {"probe program": f"{len(ready.sent)} exec channel(s), {sent / 1000:.0f} kB of program"}


def commands(ready: Ready) -> Sequence[Command]:
    """Every contender at every size."""
    return [command for size in ready.sizes for command in at(ready, size)]


def at(ready: Ready, size: int, variant: str = "") -> list[Command]:
    """Every contender at one size."""
    peers = ready.tools(size)
    found = [
        peers.ssh_true(),
        peers.each(PROBES, probe_script(ready.sent, peers.folder)),
        *(look(ready, verb, size) for verb in (PLAN, AUDIT)),
        peers.pyinfra(),
    ]
    if size <= MOST_OF_ANSIBLE:
        found += [replace(peers.ansible(SITE, mitogen=one), rounds=rounds_of_ansible(size)) for one in (False, True)]
    return [replace(command, variant=variant) for command in found]


def look(ready: Ready, verb: str, size: int) -> Command:
    """Our verb."""
    words = ("--inventory", str(ready.hosts.inventory), "--hosts", ",".join(ready.names[:size]))
    return replace(
        ours(verb, size, *words, env=ready.hosts.environment),
        netns=ready.hosts.desk.netns, cable=ready.hosts.desk.cable,
    )  # fmt: skip


def goals() -> Sequence[Goal]:
    """Those of wall and of processor time."""
    return (
        Goal("24 hosts: wall of the plan / of the probe program alone", 1.1,
             lambda found: found.ratio(PLAN, PROBES, 24, "wall_s"), "×"),
        Goal("24 hosts: wall of the plan / of `ssh true`", 2.5,
             lambda found: found.ratio(PLAN, SSH, 24, "wall_s"), "×"),
        Goal("24 hosts: wall of pyinfra / of the plan", 10,
             lambda found: found.ratio(PYINFRA, PLAN, 24, "wall_s"), "×", at_least=True),
        Goal("10 hosts: wall of Ansible with pipelining / of the plan", 50,
             lambda found: found.ratio(ANSIBLE, PLAN, 10, "wall_s"), "×", at_least=True),
        Goal("controller CPU of the plan for each added green host", 6,
             lambda found: 1000 * found.per_added(PLAN, 1, 24, "cpu_s"), " ms"),
        Goal("controller CPU of the audit for each added green host", 9,
             lambda found: 1000 * found.per_added(AUDIT, 1, 24, "cpu_s"), " ms"),
        Goal("controller CPU for each added host: the plan / `ssh true`", 1,
             lambda found: divided(found.per_added(PLAN, 1, 24, "cpu_s"), found.per_added(SSH, 1, 24, "cpu_s")), "×"),
    )  # fmt: skip


PLOTTED = (SSH, PROBES, PLAN, AUDIT, PYINFRA, ANSIBLE, MITOGEN)
