"""Whose turn it is where several jobs wait for a lock of the host, with the real /bin/sh and flock."""

from __future__ import annotations

import fcntl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostwright.apply.jobs import scripting
from hostwright.apply.jobs.scripting import LogReader
from hostwright.common.quoting import sh
from hostwright.plan.model import Change, RolePlan, RoleResult, Step
from tests.unit.support.hostjobs import start_steps, until, waiting


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks of our own."""
    monkeypatch.setattr(scripting, "LOCK_DIR", str(tmp_path / "locks"))
    return tmp_path / "locks"


@contextmanager
def held(locks: Path) -> Iterator[None]:
    """Somebody has the lock of dpkg."""
    locks.mkdir(exist_ok=True)
    with (locks / "dpkg.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def queue(locks: Path) -> list[str]:
    """The tickets of those who wait."""
    return sorted(path.name for path in (locks / "dpkg.queue").glob("[!.]*"))


def role(*steps: Step) -> RolePlan:
    return RolePlan("cuda", (), tuple(Change(f"thing {n}", "no", "yes", (step,)) for n, step in enumerate(steps)))


def writes(place: Path, name: str, lock: str = "dpkg") -> Step:
    return Step(sh("echo %s >>%s", name, place / "order"), lock)


def begun(folder: Path, plan: RolePlan, *remaining_s: float) -> subprocess.Popen[bytes]:
    return start_steps(plan, folder, remaining_s=remaining_s)


def order(place: Path) -> list[str]:
    return (place / "order").read_text().split()


def result(folder: Path, status: int = 0) -> RoleResult:
    reader = LogReader("cuda", [], "NONCE")
    reader.feed((folder / "log").read_bytes())
    return reader.result(status)


def all_end(*running: subprocess.Popen[bytes]) -> None:
    assert [process.wait(timeout=60) for process in running] == [0] * len(running)


def test_the_most_urgent_of_those_who_wait_gets_the_lock(tmp_path, locks):
    ranks = {"a": 10.0, "b": 40.0, "c": 20.0, "d": 30.04}
    with held(locks):
        running = [begun(tmp_path / name, role(writes(tmp_path, name)), rank) for name, rank in ranks.items()]
        until(lambda: len(queue(locks)) == 4, "four tickets")
        assert queue(locks) == ["100.a", "200.c", "300.d", "400.b"]  # tenths of a second
    all_end(*running)
    assert order(tmp_path) == ["b", "d", "c", "a"]
    assert queue(locks) == []


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 90), min_size=2, max_size=6, unique=True))
def test_any_number_of_them_in_any_order(tmp_path_factory, monkeypatch, ranks):
    place = tmp_path_factory.mktemp("turns")
    monkeypatch.setattr(scripting, "LOCK_DIR", str(place / "locks"))
    with held(place / "locks"):
        running = [begun(place / str(rank), role(writes(place, str(rank))), rank) for rank in ranks]
        until(lambda: len(queue(place / "locks")) == len(ranks), "all tickets")
    all_end(*running)
    assert order(place) == [str(rank) for rank in sorted(ranks, reverse=True)]


@pytest.mark.parametrize(
    ("left_s", "turns"), [(30, ["first", "first", "second"]), (10, ["first", "second", "first"])], ids=["less", "more"]
)
def test_a_lock_is_kept_between_steps_unless_somebody_more_urgent_waits(tmp_path, locks, left_s, turns):
    flag = tmp_path / "flag"
    first = role(Step(waiting(flag), "dpkg"), writes(tmp_path, "first"), writes(tmp_path, "first"))
    one = begun(tmp_path / "one", first, 50, 40, left_s)
    until(lambda: (locks / "dpkg.lock").exists() and "begin 0" in (tmp_path / "one" / "log").read_text(), "the first")
    two = begun(tmp_path / "two", role(writes(tmp_path, "second")), 20)
    until(lambda: queue(locks) == ["200.two"], "the second waits")
    flag.touch()
    all_end(one, two)
    assert order(tmp_path) == turns


def test_a_step_without_the_lock_gives_it_back(tmp_path, locks):
    flag = tmp_path / "flag"
    first = role(writes(tmp_path, "first"), Step(waiting(flag)), writes(tmp_path, "first"))
    one = begun(tmp_path / "one", first, 50, 40, 30)
    until(lambda: "begin 1" in (tmp_path / "one" / "log").read_text(), "the step without a lock")
    all_end(begun(tmp_path / "two", role(writes(tmp_path, "second")), 1))
    flag.touch()
    all_end(one)
    assert order(tmp_path) == ["first", "second", "first"]


def test_who_was_killed_while_it_waited_holds_up_nobody(tmp_path, locks):
    with held(locks):
        killed = begun(tmp_path / "killed", role(writes(tmp_path, "killed")), 90)
        until(lambda: queue(locks) == ["900.killed"], "the first ticket")
        lives = begun(tmp_path / "lives", role(writes(tmp_path, "lives")), 10)
        until(lambda: len(queue(locks)) == 2, "the second ticket")
        killed.kill()
        killed.wait()
    all_end(lives)
    assert order(tmp_path) == ["lives"]
    assert queue(locks) in ([], ["900.killed"])  # removed by whoever sees next that nobody holds it


def test_the_ticket_of_an_earlier_boot_is_removed(tmp_path, locks):
    (locks / "dpkg.queue").mkdir(parents=True)
    (locks / "dpkg.queue" / "99999999.old").touch()
    (locks / "dpkg.queue" / "no number").touch()
    all_end(begun(tmp_path / "one", role(writes(tmp_path, "one")), 10))
    assert queue(locks) == ["no number"]


def test_where_no_ticket_can_be_written_the_lock_is_taken_all_the_same(tmp_path, locks):
    locks.mkdir()
    (locks / "dpkg.queue").write_text("a file in its place")
    all_end(begun(tmp_path / "one", role(writes(tmp_path, "one"), writes(tmp_path, "one")), 10, 5))
    assert order(tmp_path) == ["one", "one"]


def test_tickets_are_roots_alone(tmp_path, locks):
    with held(locks):
        one = begun(tmp_path / "one", role(writes(tmp_path, "one")), 10)
        until(lambda: queue(locks) == ["100.one"], "the ticket")
        assert (locks / "dpkg.queue").stat().st_mode & 0o777 == 0o700
    all_end(one)


def test_what_a_step_waited_is_told_and_is_part_of_its_time(tmp_path, locks):
    with held(locks):
        one = begun(tmp_path / "one", role(writes(tmp_path, "one"), writes(tmp_path, "one")), 10, 5)
        until(lambda: queue(locks) == ["100.one"], "the ticket")
        came_s = (locks / "dpkg.queue" / "100.one").stat().st_mtime
        until(lambda: time.time() > came_s + 0.2, "a fifth of a second")
    all_end(one)
    first, second = result(tmp_path / "one").steps
    assert 0.2 <= first.waited_s <= first.duration_s
    assert second.waited_s == 0.0


def test_a_lock_that_never_is_free_fails_the_step_and_says_so(tmp_path, locks, monkeypatch):
    monkeypatch.setattr(scripting, "LOCK_WAIT_S", 1)
    with held(locks):
        one = begun(tmp_path / "one", role(writes(tmp_path, "one")), 10)
        assert one.wait(timeout=60) == 1
    (step,) = result(tmp_path / "one", 1).steps
    assert (step.status, step.output) == (1, "hostwright: error: its lock (dpkg) was not free within 1 s")
    assert queue(locks) == []
