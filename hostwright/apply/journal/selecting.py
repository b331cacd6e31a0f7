"""Hosts selected by their result: ``@failed`` and the like, and what ``provision --resume`` has left to do."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostwright.apply.journal.reading import Runs, RunSummary
from hostwright.apply.journal.records import INTERRUPTED, RUNNING
from hostwright.apply.journal.results import AS_DESIRED, results_of, scan
from hostwright.common.errors import InputError
from hostwright.common.places import JOURNAL, place_of
from hostwright.inventory.patterns import terms

#: What each ``@`` set of the last run holds: hosts with one of these results.
SETS: Mapping[str, frozenset[str]] = {
    "failed": frozenset({"failed", "unreachable", INTERRUPTED}),
    "locked": frozenset({"locked"}),
    "unreachable": frozenset({"unreachable"}),
    "changed": frozenset({"changed"}),
    "pending": frozenset({"pending"}),
    "untouched": frozenset({"untouched"}),
    "stopped": frozenset({"stopped"}),
}


@dataclass(frozen=True, slots=True)
class Resume:
    """What a run left to do: its hosts that are not as desired, in its order, and the options it was given.

    ``masked`` names the options that cannot be taken from the record because they contained a secret.
    """

    run: str
    hosts: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    masked: tuple[str, ...] = ()


def named_sets(root: Path, inventory: str | Path) -> dict[str, set[str]]:
    """The sets of the last finished run on this inventory that provisioned or verified; empty without such a run."""
    last = _last(root, inventory, ("provision", "verify", "rebuild", "rollback"))
    return sets_in(_results(last)) if last else {}


def sets_in(results: Mapping[str, str]) -> dict[str, set[str]]:
    """The ``@`` sets of hosts with these results."""
    return {name: {host for host, result in results.items() if result in words} for name, words in SETS.items()}


def check_sets(pattern: str, sets: Mapping[str, object], groups: Container[str]) -> None:
    """Raise ``InputError`` if a ``--hosts`` pattern names a set of the last run and no such run exists."""
    for term in terms(pattern):
        name = term.lstrip("!& ").removeprefix("@")
        if term.endswith(f"@{name}") and name in SETS and name not in sets and name not in groups:
            raise InputError(
                f"@{name} selects hosts of the last run, but no run on this inventory is recorded", "--hosts"
            )


def last_provision(root: Path, inventory: str | Path) -> RunSummary | None:
    """The last provision run on this inventory, also one in progress; ``None`` where there is none."""
    return _last(root, inventory, ("provision",), over=False)


def to_resume(root: Path, inventory: str | Path) -> Resume:
    """What the last provision run on this inventory left to do.

    Raises ``InputError`` if no such run exists, if it left nothing to do, or if it is still in progress.
    """
    last = last_provision(root, inventory)
    if last is None:
        raise InputError(f"there is nothing to resume: no provision run on {inventory} is recorded", "--resume")
    if last.state == RUNNING:
        who = f"process {last.header.pid} of {last.header.operator}"
        raise InputError(f"the run {last.run} is still in progress ({who}); wait for it, or stop it first", "--resume")
    left = tuple(host for host, result in _results(last).items() if result not in AS_DESIRED)
    if not left:
        raise InputError(f"there is nothing to resume: the run {last.run} left every host as desired", "--resume")
    return Resume(last.run, left, last.header.options, last.header.masked)


def _last(root: Path, inventory: str | Path, verbs: tuple[str, ...], *, over: bool = True) -> RunSummary | None:
    place = place_of(inventory)
    runs = (run for run in Runs(root).list() if run.header.place == place and run.header.verb in verbs)
    return next((run for run in runs if not (over and run.state == RUNNING)), None)


def _results(run: RunSummary) -> dict[str, str]:
    return results_of(run.header.hosts, *scan(run.folder / JOURNAL), running=False)
