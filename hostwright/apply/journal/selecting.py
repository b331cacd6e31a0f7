"""Selects hosts by their result in a run: ``@failed``, ``@failed:RUN`` and so on, and the hosts of ``--resume``."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hostwright.apply.journal.reading import Runs, RunSummary
from hostwright.apply.journal.records import INTERRUPTED, RUNNING
from hostwright.apply.journal.results import AS_DESIRED, UNTOUCHED, results_of, scan
from hostwright.apply.journal.runs import RecordedRun
from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.places import JOURNAL, OF_A_RUN, place_of
from hostwright.inventory import Host, Inventory, select
from hostwright.inventory.model import ALL, Group
from hostwright.inventory.patterns import fold, terms

#: name of a set of hosts with ``@`` → results of the hosts in this set
SETS: Mapping[str, frozenset[str]] = {
    "failed": frozenset({"failed", "unreachable", INTERRUPTED}),
    "locked": frozenset({"locked"}),
    "unreachable": frozenset({"unreachable"}),
    "changed": frozenset({"changed"}),
    "pending": frozenset({"pending"}),
    "untouched": frozenset({"untouched"}),
    "stopped": frozenset({"stopped"}),
}
UNFINISHED = frozenset({UNTOUCHED, "stopped", INTERRUPTED})  #: results of hosts on which a stopped run did not finish


@dataclass(frozen=True, slots=True)
class Resume:
    """The hosts of an earlier run that are not as desired, in order, and the options of that run.

    ``masked`` names the options that contained a secret and so cannot be read from the run's record.
    """

    run: str
    hosts: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    masked: tuple[str, ...] = ()


def named_sets(root: Path, inventory: str | Path) -> dict[str, set[str]]:
    """Return the ``@`` sets (such as ``@failed``) for an inventory, from its latest finished run.

    Only provision, verify, rebuild and rollback runs count. Return an empty mapping if no such run exists.
    """
    last = _last(root, inventory, ("provision", "verify", "rebuild", "rollback"))
    return sets_in(_results(last)) if last else {}


def sets_in(results: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the hosts in each ``@`` set (such as ``@failed``). ``results`` maps each host to its result."""
    return {name: {host for host, result in results.items() if result in words} for name, words in SETS.items()}


def sets_of_runs(pattern: str, root: Path, names: Collection[str] = ()) -> dict[str, set[str]]:
    """Return the hosts of each set such as ``failed:RUN`` that the ``--hosts`` pattern ``pattern`` names.

    ``names`` are the host names of the inventory. Raises ``InputError`` for an unknown run.
    """
    named = (OF_A_RUN.fullmatch(term.lstrip("!& ")) for term in terms(pattern, names))
    found = [(match["set"], match["run"]) for match in named if match]
    return {f"{name}:{run}": sets_in(_results(Runs(root).find(run, "--hosts")))[name] for name, run in found}


def check_sets(pattern: str, sets: Mapping[str, object], groups: Container[str]) -> None:
    """Raise ``InputError`` if a ``--hosts`` pattern names a set such as ``@failed``, and no run is recorded."""
    for term in terms(pattern):
        name = term.lstrip("!& ").removeprefix("@")
        if term.endswith(f"@{name}") and name in SETS and name not in sets and name not in groups:
            raise InputError(
                f"@{name} selects hosts of the last run, but no run on this inventory is recorded", "--hosts"
            )


def resumable(root: Path, inventory: str | Path, name: str = "", known: Collection[str] | None = None) -> RunSummary:
    """Return the provision run that ``--resume`` continues: the run ``name``, else the latest with unfinished hosts.

    An unfinished host counts if no later run worked on it, and if ``known``, the inventory's hosts, contains it.

    Raises ``InputError`` if no run qualifies, or if the run is still in progress. Raises ``InputError`` also if an
    older run was stopped and the latest run also left hosts unfinished.
    """
    if name:
        return _unless_running(_named(root, inventory, name))
    place = place_of(inventory)
    runs = [run for run in Runs(root).list() if run.header.place == place and run.header.verb == "provision"]
    if not runs:
        raise InputError(f"nothing to resume: no provision run on the inventory {inventory} is recorded", "--resume")
    last, stopped = _left_and_stopped(runs, known)
    if last is None:
        raise InputError(f"nothing to resume: the run {runs[0].run} left every host as desired", "--resume")
    if stopped is None or stopped.run == last.run:
        return _unless_running(last)
    raise InputError(
        f"two runs are unfinished: {stopped.run} was stopped; {last.run} left these hosts to do: "
        f"{fold(_left(last)) or 'none'}. Resume one of them: {Command('provision', resume=stopped.run)} or "
        f"{Command('provision', resume=last.run)}",
        "--resume",
    )


def to_resume(root: Path, inventory: str | Path, name: str = "") -> Resume:
    """Return the unfinished hosts and the options of the provision run that ``resumable`` returns.

    Raises ``InputError`` as ``resumable`` does, or if all hosts of the run are as desired.
    """
    run = resumable(root, inventory, name)
    left = _left(run)
    if not left:
        raise InputError(f"nothing to resume: the run {run.run} left every host as desired", "--resume")
    return Resume(run.run, left, run.header.options, run.header.masked)


def _named(root: Path, inventory: str | Path, name: str) -> RunSummary:
    """Return the provision run ``name``. Raises ``InputError`` if the run does not exist, or used another verb or
    inventory.
    """
    run = Runs(root).find(name, "--resume")
    if run.header.verb != "provision":
        raise InputError(
            f"the run {run.run} is a `{run.header.verb}` run, not a provision run; to select its remaining hosts, pass "
            f"--hosts '@failed:{run.run}' or '@untouched:{run.run}'",
            "--resume",
        )
    if run.header.place != place_of(inventory):
        raise InputError(
            f"the run {run.run} used another inventory; pass --inventory {run.header.inventory}", "--resume"
        )
    return run


def _unless_running(run: RunSummary) -> RunSummary:
    if run.state == RUNNING:
        who = f"process {run.header.pid} of {run.header.operator}"
        raise InputError(f"the run {run.run} is still in progress ({who}); wait for its end, or stop it", "--resume")
    return run


def _left_and_stopped(
    runs: list[RunSummary], known: Container[str] | None
) -> tuple[RunSummary | None, RunSummary | None]:
    """Return the latest run that left hosts unfinished or is in progress, and the latest run that was stopped early.
    ``runs`` are ordered from the newest. If ``known`` is given, only the hosts in it count.
    """
    last = None
    begun: set[str] = set()
    for run in runs:
        if run.state == RUNNING:
            last = last or run
        wanted = UNFINISHED if last else run.results.keys() - AS_DESIRED
        results = _results(run) if wanted & run.results.keys() else {}
        left = {host for host, word in results.items() if word in wanted and host not in begun}
        left = {host for host in left if known is None or host in known}
        last = last or (run if left else None)
        if any(results[host] in UNFINISHED for host in left):
            return last, run
        begun.update(host for host in run.header.hosts if results.get(host) != UNTOUCHED)
    return last, None


def _left(run: RunSummary) -> tuple[str, ...]:
    return tuple(host for host, result in _results(run).items() if result not in AS_DESIRED)


def _last(root: Path, inventory: str | Path, verbs: tuple[str, ...]) -> RunSummary | None:
    place = place_of(inventory)
    runs = (run for run in Runs(root).list() if run.header.place == place and run.header.verb in verbs)
    return next((run for run in runs if run.state != RUNNING), None)


def _results(run: RunSummary) -> dict[str, str]:
    return results_of(run.header.hosts, *scan(run.folder / JOURNAL), running=False)


def narrowed(run: RecordedRun, pattern: str) -> RecordedRun:
    """Return ``run`` with only the hosts that ``pattern`` selects. ``@failed`` and the other sets refer to this run."""
    if not pattern:
        return run
    names = {host_run.host: Host(host_run.host) for host_run in run.hosts}
    inventory = Inventory(names, {ALL: Group(ALL, tuple(names), (), 0)})
    sets = sets_in({host_run.host: host_run.result for host_run in run.hosts})
    chosen = {host.name for host in select(inventory, pattern, sets)}
    return replace(run, hosts=tuple(host_run for host_run in run.hosts if host_run.host in chosen))
