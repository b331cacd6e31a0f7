"""How long a user waits at the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.cases.ours import PLAN, ours
from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command
from benchmarks.measuring.machine import own_program
from benchmarks.places.hosts import Hosts
from benchmarks.places.places import Places

NAME = "start-up"
TITLE = "From the prompt to the answer"
ABOUT = "`hostwright --list`, and the plan of two green lab hosts, from the shell's prompt."
BOUND_S = 120.0
TABLE = Table(traffic=False)
LIST = "hostwright --list"
COSTS = (Cost(LIST, 0, 0.4), Cost(PLAN, 2, 1.9))
REST_S = 20.0


@dataclass(frozen=True, slots=True)
class Ready:
    """Two clones."""

    hosts: Hosts
    names: tuple[str, ...]


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Two clones."""
    hosts = places.hosts()
    yield Ready(hosts, hosts.clones(2))


def check(ready: Ready) -> str:
    """The plan's own check asks that both are as desired."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Nothing that the page does not say."""
    return {}


def commands(ready: Ready) -> Sequence[Command]:
    """Both."""
    words = ("--inventory", str(ready.hosts.inventory), "--hosts", ",".join(ready.names))
    return [
        Command(LIST, 0, (own_program("hostwright"), "--list")),
        ours(PLAN, 2, *words, env=ready.hosts.environment),
    ]


def goals() -> Sequence[Goal]:
    """What a user does not notice, and what they wait for."""
    return (
        Goal("`hostwright --list`", 0.3, lambda found: found.median(LIST, 0, "wall_s"), " s"),
        Goal("plan of two green hosts", 1.5, lambda found: found.median(PLAN, 2, "wall_s"), " s"),
    )


PLOTTED = (LIST, PLAN)
