"""Case: duration of short commands, such as ``hostwright --help``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.cases.ours import PLAN, ours
from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command
from benchmarks.measuring.machine import own_program
from benchmarks.peers import files, tools
from benchmarks.peers.tools import HERE, PYINFRA, Tools
from benchmarks.peers.venvs import environment
from benchmarks.places.hosts import Hosts
from benchmarks.places.places import Places

NAME = "start-up"
TITLE = "From the prompt to the answer"
ABOUT = """\
`hostwright --list` and `--help` beside `ansible --version`, and the plan of two green lab hosts beside pyinfra's run on
the same two, from the shell's prompt."""
BOUND_S = 240.0
TABLE = Table(traffic=False)
LIST, HELP, ANSIBLE = "hostwright --list", "hostwright --help", "ansible --version"
SIZE = 2
COSTS = (
    Cost(LIST, 0, 0.4), Cost(HELP, 0, 0.4), Cost(ANSIBLE, 0, 1), Cost(PLAN, SIZE, 1.9), Cost(PYINFRA, SIZE, 9),
)  # fmt: skip
REST_S = 20.0


@dataclass(frozen=True, slots=True)
class Ready:
    """Two clones of the lab's provisioned host, and commands of other tools for the clones."""

    hosts: Hosts
    names: tuple[str, ...]
    peers: Tools


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Start two clones of the lab's provisioned host."""
    hosts, folder = places.hosts(), places.folder(NAME)
    names = hosts.clones(SIZE)
    variables = files.TENSORFLOW.lay_out(hosts, names[0], places.folder("at-hand"))
    yield Ready(hosts, names, tools.of(hosts, names, variables, folder))


def check(ready: Ready) -> str:
    """Return an empty text, because the measured commands fail if a host changes."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return no facts about hosts or files."""
    return {}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands without hosts, and then the commands with two hosts."""
    words = ("--inventory", str(ready.hosts.inventory), "--hosts", ",".join(ready.names))
    desk = ready.hosts.desk
    return [
        *(Command(name, 0, (own_program("hostwright"), name.split()[1])) for name in (LIST, HELP)),
        ansible(ready.peers.folder),
        replace(ours(PLAN, SIZE, *words, env=ready.hosts.environment), netns=desk.netns, cable=desk.cable),
        ready.peers.pyinfra(),
    ]


def ansible(folder: Path) -> Command:
    """Return the command ``ansible --version``. Ansible stores its files in ``folder``."""
    env = {"ANSIBLE_CONFIG": str(HERE / "ansible/ansible.cfg"), "ANSIBLE_HOME": str(folder / "ansible")}
    return Command(ANSIBLE, 0, (str(environment("ansible") / "ansible"), "--version"), env=env)


def goals() -> Sequence[Goal]:
    """Return the goals, which compare Hostwright's commands with other tools."""
    return (
        Goal("wall of `hostwright --list` / of `ansible --version`", 0.5,
             lambda found: found.ratio(LIST, ANSIBLE, 0, "wall_s"), "×"),
        Goal("wall of `hostwright --help` / of `ansible --version`", 0.5,
             lambda found: found.ratio(HELP, ANSIBLE, 0, "wall_s"), "×"),
        Goal("2 hosts: wall of the plan / of pyinfra", 0.5,
             lambda found: found.ratio(PLAN, PYINFRA, SIZE, "wall_s"), "×"),
    )  # fmt: skip


PLOTTED = (LIST, HELP, ANSIBLE, PLAN, PYINFRA)
