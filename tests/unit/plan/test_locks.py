"""Tests of locks: their records, permissions, and the programs on the host, run by this machine's /bin/sh."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.locking.hostlocks import HostLocks
from hostwright.apply.rollout.rollout import Results
from hostwright.cli.tasks.keep import lock
from hostwright.cli.views.locks import show_locks
from hostwright.common import operator
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.plan.host import locks
from hostwright.plan.host.locks import LOCK, RUN_LOCK, UNREADABLE, Holder, OperatorLock
from hostwright.plan.model import Answer, Facts
from tests.unit.support.shell import ask, program, run

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINE = Holder("alice@desk", "run-1", "gpu01", "machine-a", 4242, "1@b", NOW)
THEIRS = replace(MINE, owner="bob@lap", run="run-2", machine="machine-b")
RMA = OperatorLock("alice@desk", "RMA 4711", "gpu07", NOW, NOW + timedelta(days=3))


def facts(lock: str | None = None, run: str = "", heard: object = 1) -> Facts:
    text = "" if lock is None else f"there\n{lock}"
    return Facts({locks.LOCK: Answer(0, text), locks.RUN_LOCK: Answer(0, f"heard {heard}\n{run}" if run else "")})


# Records


def test_records_come_back_as_they_were_written():
    assert locks.read_holder(MINE.to_json()) == MINE
    assert locks.run_lock(facts(run=MINE.to_json() + "\n")) == MINE
    assert locks.operator_lock(facts(RMA.to_json() + "\n")) == RMA
    assert "\n" not in MINE.to_json() + RMA.to_json()


def test_a_host_without_locks_has_none():
    assert locks.operator_lock(facts()) is None
    assert locks.run_lock(facts()) is None


GARBAGE = {
    "empty": "",
    "half of one": RMA.to_json()[:60],
    "no object": "[]",
    "later schema": RMA.to_json().replace('"schema":1', '"schema":2'),
    "no zone": RMA.to_json().replace("Z", ""),
    "a terminal's": RMA.to_json().replace("RMA", "\\u001b[2J"),
    "two lines": RMA.to_json().replace("RMA", "a\\nb"),
    "too long": RMA.to_json().replace("RMA", "R" * 300),
    "another kind of time": RMA.to_json().replace('"2026-03-01T12:00:00Z"', "1772366400"),
    "a number": RMA.to_json().replace('"RMA 4711"', "4711"),
    "nobody's": RMA.to_json().replace("alice@desk", ""),
    "deep": "[" * 8000,
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE.keys())
def test_unreadable_lock_file_locks_until_forced_off(text: str):
    assert locks.operator_lock(facts(text)) is UNREADABLE
    assert "invoke unlock --force" in locks.refusal(facts(text), NOW)
    assert "--force" in locks.forbids(UNREADABLE, "alice@desk", NOW)


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_run_record_that_is_not_understood_is_nobodys(text: str):
    assert locks.run_lock(facts(run=text)) is None


@given(st.text(max_size=200))
def test_no_text_of_a_host_is_an_error(text: str):
    given_facts = facts(text, text)
    assert isinstance(locks.refusal(given_facts, NOW), str)
    assert locks.run_lock(given_facts) is None


def test_run_without_heartbeat_is_gone():
    theirs = replace(MINE, machine="another", run="their-run")
    ours = replace(MINE, run="our-run")
    for heard, found in ((0, theirs), (5, theirs), (9, None), (400, None), ("", theirs), ("x", theirs), (-99, theirs)):
        assert locks.living(facts(run=theirs.to_json(), heard=heard), ours) == found
    assert locks.living(facts(run=MINE.to_json()), MINE) is None, "our own"
    assert locks.living(facts(run=replace(MINE, machine="another").to_json()), MINE) is None, "a worker of our own"
    assert locks.living(facts(), ours) is None


def test_the_end_of_the_calendar_in_any_zone_can_be_shown():
    text = RMA.to_json().replace("2026-03-04T12:00:00Z", "9999-12-31T23:59:59-12:00")
    assert "9999-12-31" in locks.refusal(facts(text), NOW)


# Who may do what


def test_operators_lock_forbids_changes_and_names_owner_reason_end():
    sentence = locks.refusal(facts(RMA.to_json()), NOW + timedelta(days=1))
    for part in (
        "alice@desk",
        "RMA 4711",
        "2026-03-01 12:00 UTC",
        "2026-03-04 12:00 UTC",
        "invoke unlock --hosts gpu07",
    ):
        assert part in sentence


def test_a_lock_ends_at_its_time():
    assert locks.refusal(facts(RMA.to_json()), RMA.until - timedelta(seconds=1))
    assert locks.refusal(facts(RMA.to_json()), RMA.until) == ""
    assert locks.refusal(facts(), NOW) == ""


def test_only_its_owner_touches_a_lock_without_force_until_it_has_ended():
    assert locks.forbids(RMA, "alice@desk", NOW) == ""
    assert "--force" in locks.forbids(RMA, "bob@lap", NOW)
    assert locks.forbids(RMA, "bob@lap", RMA.until) == ""
    assert locks.forbids(None, "bob@lap", NOW) == ""


def test_a_worker_holds_a_lock_in_the_operators_name():
    assert locks.holder("run-3", "gpu01", NOW, "anna@desk through root@gw1").owner == "anna@desk through root@gw1"
    assert locks.holder("run-3", "gpu01", NOW).owner == operator.operator()


def test_the_refusal_names_operator_time_and_run():
    sentence = locks.held_by(MINE)
    for part in ("alice@desk", "2026-03-01 12:00 UTC", "run-1", "process 4242 on desk", "`invoke runs.follow`"):
        assert part in sentence


def test_a_lock_lapses_that_is_dead_or_silent_or_our_own():
    here = locks.holder("run-3", "gpu01", NOW)
    dead = replace(here, pid=4194305, started="1@x", run="run-2")
    assert not locks.lapsing(THEIRS, 3, MINE)
    assert locks.lapsing(THEIRS, 9, MINE)
    assert locks.lapsing(None, 0, MINE)
    assert locks.lapsing(here, 0, here), "of a connection that we have lost"
    elsewhere = replace(here, machine="machine-b", pid=1, started="1@y")
    assert locks.lapsing(elsewhere, 0, here), "of a worker of this run that was lost"
    assert not locks.lapsing(replace(here, run="run-2"), 0, here), "another run in this very process lives"
    assert locks.lapsing(dead, 0, here)
    assert not locks.lapsing(replace(dead, machine="machine-b"), 0, here), "who can tell from here"
    assert not locks.lapsing(THEIRS, -86400 * 365, MINE), "somebody has set the host's clock"


# Durations


@pytest.mark.parametrize(
    ("text", "hours"), [("3d", 72), ("12h", 12), ("90m", 1.5), ("2w", 336), ("1d12h", 36), (" 1W2D ", 216), ("8h", 8)]
)
def test_durations(text: str, hours: float):
    assert locks.read_duration(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "3", "d", "0h", "-3d", "12h1d", "3x", "P3D", "3d?", "٣d", "9" * 20 + "w"])
def test_an_unreadable_duration_is_refused_with_an_example(text: str):
    with pytest.raises(InputError, match=r"--for: found .*1d12h"):
        locks.read_duration(text)


def test_the_default_is_a_duration():
    assert locks.read_duration(locks.DEFAULT_FOR) == timedelta(hours=8)


# The programs on the host


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both lock folders of a host, below ``tmp_path``."""
    for name, folder in {"STATE_DIR": "state", "RUN_DIR": "run"}.items():
        for probe in ("LOCK", "RUN_LOCK"):
            asked = getattr(locks, probe)
            script = asked.script.replace(getattr(locks, name), str(tmp_path / folder))
            monkeypatch.setattr(locks, probe, replace(asked, script=script))
        monkeypatch.setattr(locks, name, str(tmp_path / folder))
    return tmp_path


def seen() -> Facts:
    return Facts({probe: Answer(*ask(probe.script)) for probe in (locks.LOCK, locks.RUN_LOCK)})


def test_an_operators_lock_is_put_on_and_taken_off(place: Path):
    assert locks.operator_lock(seen()) is None
    assert run(locks.lock_script(RMA, seen())).returncode == 0
    file = place / "state" / "lock.json"
    assert (locks.operator_lock(seen()), oct(file.stat().st_mode & 0o777)) == (RMA, "0o644")
    assert oct((place / "run" / "operator.lock").stat().st_mode & 0o777) == "0o600"
    assert run(locks.unlock_script(seen())).returncode == 0
    assert locks.operator_lock(seen()) is None
    assert not list((place / "state").iterdir())


def test_every_reason_arrives_as_it_is(place: Path):
    odd = replace(RMA, reason='it\'s "$(id)" `x` \\n %s ü')
    assert run(locks.lock_script(odd, seen())).returncode == 0
    assert locks.operator_lock(seen()) == odd


def test_one_of_several_concurrent_locks_wins(place: Path):
    before = seen()
    wanted = [replace(RMA, owner=f"operator-{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda one: run(locks.lock_script(one, before)), wanted))
    assert sorted(one.returncode for one in done) == [0] + [locks.MOVED_STATUS] * 7
    winner = next(one for one, ended in zip(wanted, done, strict=True) if ended.returncode == 0)
    assert locks.operator_lock(seen()) == winner


def test_a_lock_that_was_decided_about_is_the_one_that_is_changed(place: Path):
    before = seen()
    run(locks.lock_script(RMA, before))
    other = replace(RMA, owner="bob@lap")
    assert run(locks.lock_script(other, before)).returncode == locks.MOVED_STATUS
    assert run(locks.unlock_script(before)).returncode == locks.MOVED_STATUS
    assert locks.operator_lock(seen()) == RMA
    assert run(locks.lock_script(other, before, force=True)).returncode == 0
    assert run(locks.unlock_script(before, force=True)).returncode == 0
    assert locks.operator_lock(seen()) is None


def test_interrupted_lock_write_leaves_the_former_lock(place: Path):
    run(locks.lock_script(RMA, seen()))
    broken = program(place / "bin", "sync", "exit 1").parent
    assert run(locks.lock_script(replace(RMA, reason="other"), seen()), path=broken).returncode == 1
    assert locks.operator_lock(seen()) == RMA
    assert run(locks.lock_script(replace(RMA, reason="other"), seen())).returncode == 0
    assert [path.name for path in (place / "state").iterdir()] == ["lock.json"]


def test_a_damaged_lock_is_taken_off_by_force(place: Path):
    (place / "state").mkdir()
    (place / "state" / "lock.json").write_bytes(b"\xff\xfe{")
    assert locks.operator_lock(seen()) is UNREADABLE
    assert run(locks.unlock_script(seen(), force=True)).returncode == 0
    assert locks.operator_lock(seen()) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_where_nobody_may_look_there_may_be_a_lock(place: Path):
    (place / "state").mkdir(mode=0o000)
    assert locks.operator_lock(seen()) is UNREADABLE


def test_a_run_lock_is_seen_only_while_its_keeper_lives(place: Path):
    (place / "run").mkdir()
    assert locks.run_lock(seen()) is None
    (place / "run" / "run.json").write_text(MINE.to_json())
    start = operator.process_start(os.getpid()).partition("@")[0]
    for keeper, held in {
        f"{os.getpid()} {start}": MINE,
        f"{os.getpid()} 1": None,
        "4194305 1": None,
        f"{os.getpid()}": None,
        "": None,
        "../1 x": None,
    }.items():
        (place / "run" / "run.pid").write_text(f"{keeper}\n")
        assert locks.run_lock(seen()) == held


def test_the_questions_need_no_root():
    assert not LOCK.root
    assert not RUN_LOCK.root


# The verbs


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"reason": " "}, "--reason"),
        ({"reason": "a\x1b[2J"}, "--reason"),
        ({"reason": "two\nlines"}, "--reason"),
        ({"reason": "x" * 201}, "--reason"),
        ({"reason": "RMA", "for_": "3 days"}, "--for"),
    ],
)
def test_bad_input_is_found_before_a_host_is_touched(options: dict[str, Any], where: str):
    with pytest.raises(InputError) as caught:
        lock(Request("gpu01"), **options)
    assert caught.value.where == where


def test_a_line_says_what_became_of_a_host(capsys: pytest.CaptureFixture[str]):
    lines = []
    for found in (
        HostLocks("gpu07", RMA, None, None),
        HostLocks("gpu07", None, RMA, None),
        HostLocks("gpu07", None, None, MINE),
    ):
        show_locks(Results((found,), ()), as_json=False)
        lines.append(capsys.readouterr().out.rstrip("\n"))
    assert lines[0].startswith("gpu07  locked by alice@desk since")
    assert "(expired)" in lines[0]
    assert lines[1].startswith("gpu07  unlocked; it was locked by alice@desk")
    assert lines[2] == "gpu07  not locked; in use by alice@desk since 2026-03-01 12:00 UTC (run run-1)"
    document = json.dumps([HostLocks("gpu07", UNREADABLE, RMA, MINE).to_json()])
    assert json.loads(document)[0]["lock"]["readable"] is False
