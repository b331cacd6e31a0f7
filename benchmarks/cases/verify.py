"""Case: ``hostwright verify`` of hosts that match their stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command
from benchmarks.measuring.machine import own_program
from benchmarks.measuring.measure import HOST_CPU
from benchmarks.peers import tools
from benchmarks.places.hosts import Hosts
from benchmarks.places.places import Places
from hostwright.standard.roles.tensorflow.look import LOOK

NAME = "verify"
TITLE = "Verification of the whole stack"
ABOUT = """\
Clones of one provisioned lab host: `hostwright verify` runs every check of every layer, and all must pass. Beside it
the longest of these checks alone, over `ssh`: TensorFlow is imported and trains a model. The hosts share the cores of
this machine with each other and with the controller."""
BOUND_S = 120.0
TABLE = Table(extra={HOST_CPU: "CPU of the hosts, s"})
SIZES = (1, 2)
VERIFY, LONGEST = "hostwright verify", "the longest check alone"
COSTS = (Cost(VERIFY, 1, 5, rounds=1), Cost(VERIFY, 2, 9, rounds=1), Cost(LONGEST, 1, 3, rounds=1))
REST_S = 0.0  #: estimated seconds of the unmeasured steps. The case ``plan`` has already created the hosts.
PYTHON = "/opt/tensorflow-2.9/bin/python"


@dataclass(frozen=True, slots=True)
class Ready:
    """Hosts of the case, and directory with the program of the longest check."""

    hosts: Hosts
    names: tuple[str, ...]
    folder: Path
    sizes: tuple[int, ...]


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Start as many clones of the lab's provisioned host as the case needs."""
    hosts, folder, sizes = places.hosts(), places.folder(NAME), wanted.of(SIZES)
    (folder / "longest.py").write_text(LOOK)
    yield Ready(hosts, hosts.clones(max(sizes)), folder, sizes)


def check(ready: Ready) -> str:
    """Return an empty text, because a verification fails on any difference."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return the parts of the stack that are small stand-ins for the vendor's software."""
    return {"stack": "the lab's small profile: the driver and the large libraries are stand-ins, TensorFlow is real"}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the verification and its longest check, for all numbers of hosts."""
    return [command for size in ready.sizes for command in at(ready, size)]


def at(ready: Ready, size: int) -> list[Command]:
    """Return the verification and its longest check for ``size`` hosts."""
    peers = tools.of(ready.hosts, ready.names[:size], {}, ready.folder)
    words = ("--inventory", str(ready.hosts.inventory), "--hosts", ",".join(peers.names))
    verify = replace(
        peers.base, contender=VERIFY, words=(own_program("hostwright"), "verify", *words), env=ready.hosts.environment
    )
    longest = peers.each(LONGEST, f'exec ssh -F "$1" "$2" {PYTHON} - <"$3"', str(ready.folder / "longest.py"))
    groups = tuple(one.cgroup for one in ready.hosts.machines(peers.names))
    return [replace(command, hosts=groups) for command in (verify, longest)]


def goals() -> Sequence[Goal]:
    """Return the goals for the wall time, and for its ratio to the longest check."""
    return (
        Goal("2 hosts: wall of the verification", 8, lambda found: found.median(VERIFY, 2, "wall_s"), " s"),
        Goal("1 host: wall of the verification / of its longest check", 1.3,
             lambda found: found.ratio(VERIFY, LONGEST, 1, "wall_s"), "×"),
    )  # fmt: skip


PLOTTED = (VERIFY, LONGEST)
