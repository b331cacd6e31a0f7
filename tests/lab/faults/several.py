"""Two operators on one host, and a truncated journal."""

from __future__ import annotations

import json

from tests.lab.faults.trial import Missed, Trial

#: Without any record of the host, the journal does not show that it was begun.
WHO = "@failed,@untouched"


def two_at_once(trial: Trial) -> None:
    """Two runs on one host: one works, the other reports the lock's holder and ends with status 3."""
    delay = trial.rng.choice((0.0, 0.0, None))
    first = trial.provision(state="first")
    if delay is None:
        trial.at_moment(first)
    second = trial.provision(state="second")
    trial.end(second)
    trial.end(first)
    if second.status == 0 and second.find(r"as desired, nothing done") is not None:
        raise Missed  # the first run had already released the host
    statuses = sorted(run.status if run.status is not None else -1 for run in (first, second))
    trial.record.notes["statuses"] = [first.status, second.status]
    trial.expect(statuses == [0, 3], f"exit statuses {first.status} and {second.status} instead of one 0 and one 3")
    loser = next((run for run in (second, first) if run.status == 3), None)
    if loser is not None:
        trial.expect("in use by" in loser.output, "the loser is not told whose the host is")
    if statuses == [0, 3]:
        trial.record.further = 0


def torn_journal(trial: Trial) -> None:
    """A run was killed and its journal truncated: runs are still listed and shown, and the run can be resumed."""
    run = trial.provision()
    trial.at_moment(run)
    run.kill()
    (journal,) = (trial.folder / "state").glob("runs/*/journal.jsonl")
    size = journal.stat().st_size
    at = trial.rng.randint(0, size)
    whole_head = at > len(journal.read_bytes().partition(b"\n")[0])
    with journal.open("r+b") as file:
        file.truncate(at)
    trial.record.notes["how"] = f"{at} of {size} bytes left"
    listed = _said(trial, ["runs", "--json"], {0})
    shown = _said(trial, ["runs.show", "--run", journal.parent.name, "--json"], {0} if whole_head else {0, 2})
    trial.expect(not whole_head or journal.parent.name in listed, "the run is not listed")
    trial.expect(not whole_head or _is_json(shown), "runs.show --json says no JSON")
    inventory = ["--inventory", str(trial.inventory)]
    selected = _said(trial, ["plan", *inventory, "--hosts", WHO, "--json"], {0, 3} if whole_head else {0, 2, 3})
    trial.expect(not whole_head or trial.machine.name in selected, f"{WHO} does not hold the host")
    _said(trial, ["provision", *inventory, "--resume"], {0} if whole_head else {0, 2})
    if trial.last_run.status == 0:
        trial.record.further = 1


def _said(trial: Trial, words: list[str], statuses: set[int]) -> str:
    run = trial.invoke(words)
    trial.end(run)
    trial.expect(run.status in statuses, f"invoke {' '.join(words)}: status {run.status}: {run.output[-400:]}")
    trial.expect("Traceback" not in run.output, f"invoke {' '.join(words)}: a traceback")
    return run.output


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
