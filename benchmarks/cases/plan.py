"""Case: plan and audit of hosts that already match their stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cases.case import Cost, Table, Wanted
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
piped into `ssh` with its answers thrown away. Every run of a tool must find nothing to change. Other tools run once:
Ansible with Mitogen on 1 host, with pipelining on 4, pyinfra also on 24, with `-y`, which looks once."""
BOUND_S = 900.0
TABLE = Table()
SIZES = (1, 4, 24)
COSTS = (
    Cost(SSH, 1, 0.2), Cost(PROBES, 1, 0.4), Cost(PLAN, 1, 0.8), Cost(AUDIT, 1, 1.5),
    Cost(PYINFRA, 1, 6, rounds=1), Cost(MITOGEN, 1, 25, rounds=1),
    Cost(SSH, 4, 0.3), Cost(PROBES, 4, 0.6), Cost(PLAN, 4, 1), Cost(AUDIT, 4, 2.4),
    Cost(PYINFRA, 4, 9, rounds=1), Cost(ANSIBLE, 4, 100, rounds=1),
    Cost(SSH, 24, 0.8), Cost(PROBES, 24, 2.8), Cost(PLAN, 24, 3.3), Cost(AUDIT, 24, 11, rounds=2),
    Cost(PYINFRA, 24, 35, rounds=1),
)  # fmt: skip
REST_S = 90.0
SITE = HERE / "ansible/site.yml"


@dataclass(frozen=True, slots=True)
class Ready:
    """Hosts of the case, and the files of the measured tools."""

    hosts: Hosts
    names: tuple[str, ...]
    variables: dict[str, str]
    sent: list[tuple[bytes, bytes]]
    folder: Path
    sizes: tuple[int, ...]

    def tools(self, size: int) -> Tools:
        """Return the commands of other tools for the first ``size`` hosts."""
        folder = self.folder / str(size)
        folder.mkdir(exist_ok=True)
        return tools.of(self.hosts, self.names[:size], self.variables, folder)


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Start as many clones of the lab's provisioned host as the case needs."""
    hosts, folder = places.hosts(), places.folder(NAME)
    sizes = wanted.of(SIZES)
    names = hosts.clones(max(sizes))
    at_hand = places.folder("at-hand")
    yield Ready(
        hosts, names, files.TENSORFLOW.lay_out(hosts, names[0], at_hand), channels(hosts, folder), folder, sizes
    )


def check(ready: Ready) -> str:
    """Return an empty text, because each command fails if a host changes."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return the size of the program that a plan sends to a host to read its state."""
    sent = sum(len(sent) for _, sent in ready.sent)
    return {"probe program": f"{len(ready.sent)} exec channel(s), {sent / 1000:.0f} kB of program"}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands of all measured tools for all numbers of hosts."""
    return [command for size in ready.sizes for command in at(ready, size)]


def at(ready: Ready, size: int, variant: str = "") -> list[Command]:
    """Return the commands of all measured tools for ``size`` hosts."""
    peers = ready.tools(size)
    found = [
        peers.ssh_true(),
        peers.each(PROBES, probe_script(ready.sent, peers.folder)),
        *(look(ready, verb, size) for verb in (PLAN, AUDIT)),
        peers.pyinfra(),
    ]
    found += [peers.ansible(SITE, mitogen=one) for one in (False, True)]
    return [replace(command, variant=variant) for command in found]


def look(ready: Ready, verb: str, size: int) -> Command:
    """Return the command that runs ``verb``, such as ``hostwright plan``, on the first ``size`` hosts."""
    words = ("--inventory", str(ready.hosts.inventory), "--hosts", ",".join(ready.names[:size]))
    return replace(
        ours(verb, size, *words, env=ready.hosts.environment),
        netns=ready.hosts.desk.netns, cable=ready.hosts.desk.cable,
    )  # fmt: skip


def goals() -> Sequence[Goal]:
    """Return the goals for wall time and processor time."""
    return (
        Goal("24 hosts: wall of the plan / of the probe program alone", 1.15,
             lambda found: found.ratio(PLAN, PROBES, 24, "wall_s"), "×"),
        Goal("24 hosts: wall of the plan / of `ssh true`", 2.5,
             lambda found: found.ratio(PLAN, SSH, 24, "wall_s"), "×"),
        Goal("24 hosts: wall of the audit / of the plan", 1.3,
             lambda found: found.ratio(AUDIT, PLAN, 24, "wall_s"), "×"),
        Goal("24 hosts: wall of pyinfra / of the plan", 10,
             lambda found: found.ratio(PYINFRA, PLAN, 24, "wall_s"), "×", at_least=True),
        Goal("4 hosts: wall of Ansible with pipelining / of the plan", 50,
             lambda found: found.ratio(ANSIBLE, PLAN, 4, "wall_s"), "×", at_least=True),
        Goal("controller CPU of the plan for each added green host", 6,
             lambda found: 1000 * found.per_added(PLAN, 1, 24, "cpu_s"), " ms"),
        Goal("controller CPU of the audit for each added green host", 9,
             lambda found: 1000 * found.per_added(AUDIT, 1, 24, "cpu_s"), " ms"),
        Goal("controller CPU for each added host: the plan / `ssh true`", 1,
             lambda found: divided(found.per_added(PLAN, 1, 24, "cpu_s"), found.per_added(SSH, 1, 24, "cpu_s")), "×"),
    )  # fmt: skip


PLOTTED = (SSH, PROBES, PLAN, AUDIT, PYINFRA, ANSIBLE, MITOGEN)
