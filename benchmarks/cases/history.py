"""Case: three months of daily audits of 1,000 hosts are written to Hostwright's audit history and read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command, Done
from benchmarks.places.places import Places

NAME = "history"
TITLE = "A quarter of daily audits of 1,000 hosts"
ABOUT = """\
Made-up audits of hosts with 8 cards and some 90 values each are written with the product's own history, then read in
every way that it can be read (`benchmarks/history.py`). No host is contacted. The wall is that of writing all of it.
Most of the file is the first audit, 8 kB a host; each day adds 30 bytes."""
BOUND_S = 200.0
TABLE = Table(
    traffic=False,
    extra={
        "size_mb": "file, MB",
        "add_s": "an add, s",
        "one_host_s": "one host's history, s",
        "week_s": "a week's diff, s",
    },
)
AUDITS = "history of a quarter"
HOSTS, DAYS = 1000, 90
COSTS = (Cost(AUDITS, HOSTS, 45, rounds=1),)
REST_S = 1.0


@dataclass(frozen=True, slots=True)
class Ready:
    """Number of hosts with generated audits."""

    size: int


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Yield the number of hosts."""
    yield Ready(max(wanted.sizes, default=HOSTS))


def check(ready: Ready) -> str:
    """Return an empty text, because the case leaves no state on hosts."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return no facts, because the case has no hosts or files."""
    return {}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the command that runs ``benchmarks.history``. This program measures its own operations."""
    words = (sys.executable, "-m", "benchmarks.history", "--hosts", str(ready.size), "--days", str(DAYS), "--json")
    return [Command(AUDITS, ready.size, words, counted=read)]


def read(done: Done) -> Mapping[str, float]:
    """Parse the measurements that the program ``benchmarks.history`` prints."""
    values: dict[str, float] = json.loads(done.stdout)
    return {name: round(value, 4) for name, value in values.items()}


def goals() -> Sequence[Goal]:
    """Return the goals for the size of the history's file, and for the durations of its operations."""
    return (
        Goal("size of the file", 50, lambda found: found.median(AUDITS, HOSTS, "size_mb"), " MB"),
        Goal("an add at the end", 2, lambda found: found.median(AUDITS, HOSTS, "add_s"), " s"),
        Goal("one host's history", 0.1, lambda found: found.median(AUDITS, HOSTS, "one_host_s"), " s"),
        Goal("a week's diff", 0.1, lambda found: found.median(AUDITS, HOSTS, "week_s"), " s"),
    )


PLOTTED = ()
