"""Planning from stored facts, without a connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases.case import Table, Wanted
from benchmarks.cases.ours import AUDIT, ours
from benchmarks.figures.goals import Goal
from benchmarks.figures.statistics import Figures
from benchmarks.measuring.command import Command
from benchmarks.places.hosts import run_own
from benchmarks.places.places import Places

NAME = "offline"
TITLE = "Planning 1,000 hosts from stored facts"
ABOUT = """\
`hostwright audit --offline` of hosts that were audited before: alike, and with a package list of its own on every
host, so that no host's answers equal another's. The goals are for what 1,000 hosts cost beyond one host, which is
mostly start-up."""
BOUND_S = 300.0
TABLE = Table(traffic=False)
ALIKE, DIFFER = "alike", "all differ"
MOST = 1000
CONTENDER = "hostwright audit --offline"


@dataclass(frozen=True, slots=True)
class Ready:
    """Where the audits are kept, by variant and size."""

    inventories: dict[tuple[str, int], Path]
    environments: dict[str, dict[str, str]]


def estimate_s(wanted: Wanted) -> float:
    """Two audits of 1,000 hosts to begin with."""
    return 180 + wanted.rounds * 20


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Audit all hosts once alike, and once with differences."""
    place, folder = places.replaying(), places.folder(NAME)
    environment = places.hosts().environment
    sizes = (1, max(wanted.sizes, default=MOST))
    inventories, environments = {}, {}
    for variant, words in ((ALIKE, ()), (DIFFER, place.varying())):
        place.vary(words)
        environments[variant] = {**environment, "HOSTWRIGHT_STATE": str(folder / variant.replace(" ", "-"))}
        for size in sizes:
            inventories[variant, size] = place.inventory(f"offline-{variant.replace(' ', '-')}-{size}", size)
        largest = str(inventories[variant, sizes[-1]])
        run_own(["audit", "--inventory", largest], environments[variant], netns=place.netns)
        run_own(["audit", "--inventory", str(inventories[variant, 1])], environments[variant], netns=place.netns)
    place.vary(())
    yield Ready(inventories, environments)


def check(ready: Ready) -> str:
    """Each command's own check asks that every host is found as desired."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Where the facts are from."""
    return {"facts": "of loopback hosts that replay a provisioned lab host, stored by an audit before"}


def commands(ready: Ready) -> Sequence[Command]:
    """Both variants."""
    found = []
    for (variant, size), inventory in ready.inventories.items():
        words = ("--offline", "--inventory", str(inventory))
        command = ours(AUDIT, size, *words, env=ready.environments[variant], variant=variant)
        found.append(command)
    return found


def beyond_one(found: Figures, variant: str) -> float:
    """Seconds of wall that 1,000 hosts take beyond one."""
    return found.median(AUDIT, MOST, "wall_s", variant) - found.median(AUDIT, 1, "wall_s", variant)


def goals() -> Sequence[Goal]:
    """Both variants."""
    return (
        Goal("1,000 hosts alike, beyond one host", 0.5, lambda found: beyond_one(found, ALIKE), " s"),
        Goal("1,000 hosts that all differ, beyond one host", 5, lambda found: beyond_one(found, DIFFER), " s"),
    )


PLOTTED = (AUDIT,)
