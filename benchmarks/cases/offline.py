"""Case: hosts are audited from stored facts, without a connection (``hostwright audit --offline``)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.cases.ours import AUDIT, ours
from benchmarks.figures.goals import Goal
from benchmarks.figures.statistics import Figures
from benchmarks.measuring.command import Command
from benchmarks.places.hosts import run_own
from benchmarks.places.places import Places
from hostwright.apply.journal.factfiles import load_facts, write_facts
from hostwright.apply.journal.redaction import Redactor
from hostwright.plan.model import Facts

NAME = "offline"
TITLE = "Planning 1,000 hosts from stored facts"
ABOUT = """\
`hostwright audit --offline` of hosts that were audited before: alike, and with a package's version and an amount of
memory of its own on every host, so that no host's answers equal another's. The goals are for what 1,000 hosts cost
beyond one host, which is mostly start-up."""
BOUND_S = 300.0
TABLE = Table(traffic=False)
ALIKE, DIFFER = "alike", "all differ"
MOST = 1000
#: estimated total seconds of the audits with equal and with different facts
COSTS = (Cost(AUDIT, 1, 2.7), Cost(AUDIT, MOST, 6))
REST_S = 70.0


@dataclass(frozen=True, slots=True)
class Ready:
    """Inventories by number of hosts, and environment variables that select the stored facts of a variant."""

    inventories: dict[int, Path]
    environments: dict[str, dict[str, str]]


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Store the facts of all hosts, and create a second set of facts that differ between hosts."""
    place, folder = places.replaying(), places.folder(NAME)
    sizes = (1, max(wanted.sizes, default=MOST))
    inventories = {size: place.inventory(f"offline-{size}", size) for size in sizes}
    states = {variant: folder / variant.replace(" ", "-") for variant in (ALIKE, DIFFER)}
    environments = {
        variant: {**places.hosts().environment, "HOSTWRIGHT_STATE": str(state)} for variant, state in states.items()
    }
    for inventory in inventories.values():
        run_own(["audit", "--inventory", str(inventory)], environments[ALIKE], netns=place.netns)
    shutil.copytree(states[ALIKE], states[DIFFER])
    for number, path in enumerate(sorted(states[DIFFER].rglob("*.last.json.gz"))):
        facts, at = load_facts(path)
        own = Facts({probe: replace(answer, text=of_its_own(answer.text, number)) for probe, answer in facts.items()})
        write_facts(path, path.name.partition(".")[0], at.isoformat(), own, Redactor(()))
    yield Ready(inventories, environments)


def of_its_own(text: str, number: int) -> str:
    """Return a stored probe output ``text`` with a tzdata version or memory size (kB) made of ``number``.

    >>> of_its_own("tzdata\\t2024a-0+deb11u1\\tii ", 7), of_its_own("25165824\\n", 7)
    ('tzdata\\t000007\\tii ', '25000007\\n')
    """
    with_version = re.sub(r"\btzdata\t[^\t\n]+\t", f"tzdata\t{number:06}\t", text)
    return re.sub(r"(?m)^([0-9]{2})[0-9]{6}$", rf"\g<1>{number:06}", with_version)


def check(ready: Ready) -> str:
    """Return an empty text, because each command fails unless all hosts are as desired."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return the origin of the stored facts."""
    return {"facts": "of loopback hosts that replay a provisioned lab host, stored by an audit before"}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the offline audits of one and of all hosts, with equal and with different facts."""
    return [
        ours(AUDIT, size, "--offline", "--inventory", str(inventory), env=environment, variant=variant)
        for variant, environment in ready.environments.items()
        for size, inventory in ready.inventories.items()
    ]


def beyond_one(found: Figures, variant: str) -> float:
    """Return the additional seconds of 1,000 hosts over one host, with the stored facts of ``variant``."""
    return found.median(AUDIT, MOST, "wall_s", variant) - found.median(AUDIT, 1, "wall_s", variant)


def goals() -> Sequence[Goal]:
    """Return the goals for the additional seconds of 1,000 hosts, with equal and with different facts."""
    return (
        Goal("1,000 hosts alike, beyond one host", 0.5, lambda found: beyond_one(found, ALIKE), " s"),
        Goal("1,000 hosts that all differ, beyond one host", 5, lambda found: beyond_one(found, DIFFER), " s"),
    )


PLOTTED = (AUDIT,)
