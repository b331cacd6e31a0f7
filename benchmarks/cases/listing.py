"""Case: Hostwright and Ansible read a large inventory and list its hosts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command, Done, ended_well
from benchmarks.measuring.machine import own_program
from benchmarks.peers.tools import HERE
from benchmarks.peers.venvs import environment
from benchmarks.places.places import Places

NAME = "inventory"
TITLE = "Listing 5,000 hosts of an INI inventory"
ABOUT = """\
50 groups of 100 hosts, each with five variables, groups with three more, and groups of groups. `hostwright hosts
--json` beside `ansible-inventory --list`; both must name every host."""
BOUND_S = 300.0
TABLE = Table(traffic=False)
OURS, THEIRS = "hostwright hosts", "ansible-inventory --list"
MOST = 5000
A_GROUP = 100
COSTS = (Cost(OURS, MOST, 0.9), Cost(THEIRS, MOST, 3.2))
REST_S = 1.0


@dataclass(frozen=True, slots=True)
class Ready:
    """The inventories: number of hosts → path."""

    inventories: dict[int, Path]
    folder: Path


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Write an inventory for each number of hosts."""
    folder = places.folder(NAME)
    inventories = {}
    for size in wanted.of((MOST,)):
        inventories[size] = folder / f"{size}.ini"
        inventories[size].write_text(inventory(size))
    yield Ready(inventories, folder)


def inventory(size: int) -> str:
    """Return the text of an INI inventory with ``size`` hosts."""
    lines, groups = [], []
    for first in range(0, size, A_GROUP):
        group = f"rack{first // A_GROUP:03}"
        groups.append(group)
        lines.append(f"[{group}]")
        lines += [
            f"node{number:05} ansible_host=10.{number // 65536}.{number // 256 % 256}.{number % 256} "
            f"ansible_port=22 rack_unit={number % 42} serial=S{number:08} asset=a-{number}"
            for number in range(first, min(first + A_GROUP, size))
        ]
        lines += [f"[{group}:vars]", "ansible_user=ubuntu", f"row={first // 1000}", "owner=research", ""]
    for row in range(0, len(groups), 10):
        lines += [f"[row{row // 10}:children]", *groups[row : row + 10], ""]
    return "\n".join(lines)


def check(ready: Ready) -> str:
    """Return an empty text, because each command counts the listed hosts."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return the sizes of the inventory files."""
    return {"inventory": ", ".join(f"{path.stat().st_size / 1000:.0f} kB" for path in ready.inventories.values())}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands of Hostwright and Ansible for each inventory."""
    found = []
    for size, path in ready.inventories.items():
        ansible = environment("ansible") / "ansible-inventory"
        env = {"ANSIBLE_CONFIG": str(HERE / "ansible/ansible.cfg"), "ANSIBLE_HOME": str(ready.folder / "ansible")}
        mine = (own_program("hostwright"), "hosts", "--inventory", str(path), "--json")
        found += [
            Command(OURS, size, mine, check=listed(size, names_of_ours)),
            Command(THEIRS, size, (str(ansible), "-i", str(path), "--list"), env=env,
                    check=listed(size, names_of_theirs)),
        ]  # fmt: skip
    return found


def listed(size: int, names: Callable[[str], set[str]]) -> Callable[[Done], str]:
    """Return a check that ``names`` finds all ``size`` hosts in the output of a command."""

    def check(done: Done) -> str:
        if sentence := ended_well(done):
            return sentence
        count = len(names(done.stdout))
        return "" if count == size else f"it names {count} of {size} hosts"

    return check


def names_of_ours(text: str) -> set[str]:
    """Parse the host names in the output of ``hostwright hosts --json``."""
    return {host["host"] for host in json.loads(text)["hosts"]}


def names_of_theirs(text: str) -> set[str]:
    """Parse the host names in the output of ``ansible-inventory --list``."""
    return set(json.loads(text)["_meta"]["hostvars"])


def goals() -> Sequence[Goal]:
    """Return the goal for Hostwright's processor time."""
    return (
        Goal("5,000 hosts: CPU of `hostwright hosts` / of `ansible-inventory --list`", 0.5,
             lambda found: found.ratio(OURS, THEIRS, MOST, "cpu_s"), "×"),
    )  # fmt: skip


PLOTTED = (OURS, THEIRS)
