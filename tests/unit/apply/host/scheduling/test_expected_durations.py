"""How long steps are expected to take: from records of past runs, else by their kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.apply import events
from hostwright.apply.host.scheduling import pastruns
from hostwright.apply.host.scheduling.durations import (
    LOCKED_S,
    MIRROR_S,
    STEP_S,
    UNPACKED_BYTES_PER_S,
    Durations,
    Urgency,
)
from hostwright.apply.host.scheduling.pastruns import PastRuns
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.writing import Journal
from hostwright.plan.model import Change, Deferred, Plan, RolePlan, RoleResult, Step, StepResult

PLAIN, LOCKED, MIRROR = Step("true"), Step("true", "dpkg"), Step("true", "dpkg", tries=4)


def change(what: str, *steps: Step, artifacts: tuple[str, ...] = ()) -> Change:
    return Change(what, "a", "b", steps, artifacts=artifacts)


def role(name: str, *changes: Change, needs: tuple[str, ...] = ()) -> RolePlan:
    return RolePlan(name, needs, changes)


def record(root: Path, run: str, stack: str, *results: RoleResult, host: str = "gpu01", ends: bool = True) -> Journal:
    """A run that is recorded as such a one is."""
    header = RunHeader(run=run, verb="provision", hosts=(host,), inventory="/site/inventory")
    journal = Journal.begin(root, header, secrets=(), on_trouble=pytest.fail)
    journal(events.Observed(host, Plan(host, stack)))
    for result in results:
        journal(events.RoleFinished(host, result.role, result))
    if ends:
        journal.end(0)
    return journal


def took(name: str, *steps: StepResult) -> RoleResult:
    return RoleResult(name, 0, sum(step.duration_s for step in steps), steps)


def test_without_records_the_kind_of_a_step_and_its_files_decide():
    plan = role("cuda", change("pin", PLAIN), change("key", LOCKED), change("toolkit", MIRROR, artifacts=("repo",)))
    bytes_of_5_s = int(5 * UNPACKED_BYTES_PER_S)
    assert Durations(sizes={"repo": bytes_of_5_s}).of(plan) == (STEP_S, LOCKED_S, MIRROR_S + 5)
    assert Durations().of(plan) == (STEP_S, LOCKED_S, MIRROR_S)  # a file whose size nobody knows


def test_past_runs_decide_where_they_know_the_step(tmp_path):
    record(tmp_path, "20260101t000000-a", "lab", took("cuda", StepResult(0, "toolkit", 0, 30.0)))
    known = Durations(PastRuns(tmp_path).of("lab"))
    assert known.of(role("cuda", change("toolkit", MIRROR), change("other", PLAIN))) == (30.0, STEP_S)
    assert known.of(role("nccl", change("toolkit", MIRROR))) == (MIRROR_S,)  # the same words of another role


def test_the_steps_of_a_change_are_told_apart(tmp_path):
    steps = (StepResult(0, "venv", 0, 3.0), StepResult(1, "venv", 0, 60.0))
    record(tmp_path, "20260101t000000-a", "lab", took("tensorflow", *steps))
    assert Durations(PastRuns(tmp_path).of("lab")).of(role("tensorflow", change("venv", PLAIN, PLAIN))) == (3.0, 60.0)


def test_the_median_counts_without_the_wait_for_a_lock(tmp_path):
    for run, seconds, waited in (("a", 50.0, 40.0), ("b", 12.0, 0.0), ("c", 11.0, 0.0)):
        step = StepResult(0, "toolkit", 0, seconds, waited_s=waited)
        record(tmp_path, f"20260101t000000-{run}", "lab", took("cuda", step))
    assert PastRuns(tmp_path).of("lab") == {("cuda", "toolkit", 0): 11.0}


def test_failed_steps_and_other_stacks_say_nothing(tmp_path):
    record(tmp_path, "20260101t000000-a", "other", took("cuda", StepResult(0, "toolkit", 0, 30.0)))
    record(tmp_path, "20260101t000000-b", "lab", took("cuda", StepResult(0, "toolkit", 1, 30.0)))
    assert PastRuns(tmp_path).of("lab") == {}


def test_only_the_newest_runs_count_and_none_that_goes_on(tmp_path):
    for day in range(1, 8):
        step = StepResult(0, "toolkit", 0, float(day))
        record(tmp_path, f"202601{day:02}t000000-a", "lab", took("cuda", step))
    goes_on = record(tmp_path, "20260109t000000-a", "lab", took("cuda", StepResult(0, "toolkit", 0, 100.0)), ends=False)
    assert PastRuns(tmp_path).of("lab") == {("cuda", "toolkit", 0): 5.0}  # of days 3 to 7
    goes_on.close()


def test_a_long_record_is_read_to_a_bound_and_a_damaged_one_as_far_as_it_goes(tmp_path, monkeypatch):
    journal = record(tmp_path, "20260101t000000-a", "lab", took("cuda", StepResult(0, "toolkit", 0, 30.0)))
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole.replace(b'"role finished"', b'"role finished', 1))
    assert PastRuns(tmp_path).of("lab") == {}
    journal.path.write_bytes(whole + b"\xff\n[]\n")
    assert PastRuns(tmp_path).of("lab") == {("cuda", "toolkit", 0): 30.0}
    monkeypatch.setattr(pastruns, "MOST_BYTES", len(whole) // 2)
    assert PastRuns(tmp_path).of("lab") == {}


def test_records_are_read_once_however_many_hosts_ask(tmp_path, monkeypatch):
    record(tmp_path, "20260101t000000-a", "lab", took("cuda", StepResult(0, "toolkit", 0, 30.0)))
    read = []
    lines = pastruns._lines
    monkeypatch.setattr(pastruns, "_lines", lambda journal: (read.append(journal), lines(journal))[1])
    past = PastRuns(tmp_path)
    assert past.of("lab") == past.of("lab")
    assert len(read) == 1
    assert PastRuns(tmp_path / "none").of("lab") == {}


def test_roles_and_their_steps_by_what_is_left():
    base = role("base", change("packages", MIRROR))
    cuda = role("cuda", change("toolkit", MIRROR, PLAIN), needs=("base",))
    link = role("motd", change("file", PLAIN), needs=("base",))
    later = role("driver", Deferred("module", "a", "b", "a reboot"))
    plan, known = Plan("gpu01", "lab", (link, base, later, cuda)), Durations({("cuda", "toolkit", 0): 30.0})
    urgency = Urgency.of(plan, lambda: known)
    assert urgency.roles == ("base", "cuda", "motd")
    left = 30 + STEP_S
    assert urgency.left_s == {"motd": (STEP_S,), "base": (MIRROR_S + left,), "cuda": (left, STEP_S)}


def test_past_runs_are_not_asked_for_one_role_alone():
    alone = Plan("gpu01", "lab", (role("motd", change("file", PLAIN)),))
    assert Urgency.of(alone, lambda: pytest.fail("asked")) == Urgency(("motd",), {"motd": (STEP_S,)})
