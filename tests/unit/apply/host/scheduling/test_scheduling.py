"""Roles side by side: order, failure, and what is not tried."""

import threading
from graphlib import CycleError

import pytest

from hostwright.apply.host.scheduling.running import run_in_order
from hostwright.common.errors import HostError

NEEDS = {"base": (), "driver": ("base",), "cuda": ("base",), "cudnn": ("base", "cuda"), "container": ("base", "driver")}


def test_each_runs_after_its_needs():
    done: list[str] = []
    lock = threading.Lock()

    def work(name: str) -> None:
        with lock:
            assert set(NEEDS[name]) <= set(done)
            done.append(name)

    assert run_in_order(NEEDS, work, skipped=lambda *_: None) == []
    assert sorted(done) == sorted(NEEDS)


def test_what_does_not_need_each_other_runs_at_the_same_time():
    meeting = threading.Barrier(2, timeout=60)
    run_in_order({"driver": (), "cuda": ()}, lambda _: (meeting.wait(), None)[1], skipped=lambda *_: None)
    assert not meeting.broken


def test_a_failure_stops_only_what_needs_it():
    done, skipped = [], []

    def work(name: str) -> None:
        if name == "cuda":
            raise HostError("gpu01", "cuda broke")
        done.append(name)

    failures = run_in_order(
        {**NEEDS, "environment": ("cudnn",)}, work, skipped=lambda name, after: skipped.append((name, after))
    )
    assert [str(error) for error in failures] == ["gpu01: cuda broke"]
    assert sorted(done) == ["base", "container", "driver"]
    assert sorted(skipped) == [("cudnn", "cuda"), ("environment", "cuda")]


def test_needs_outside_count_as_done():
    done = []
    run_in_order({"cudnn": ("cuda", "base")}, done.append, skipped=lambda *_: None)
    assert done == ["cudnn"]


def test_a_bug_is_not_swallowed():
    def work(name: str) -> None:
        raise ZeroDivisionError(name)

    with pytest.raises(ZeroDivisionError):
        run_in_order({"base": ()}, work, skipped=lambda *_: None)


def test_a_bug_lets_nothing_more_begin_and_waits_for_what_runs():
    begun, broke, done = threading.Event(), [], []

    def work(name: str) -> None:
        if name == "base":
            broke.append(threading.current_thread())
            begun.set()
            raise ZeroDivisionError(name)
        assert begun.wait(60)
        broke[0].join(60)  # its error is there, and the end of this one comes after it
        done.append(name)

    with pytest.raises(ZeroDivisionError):
        run_in_order({"base": (), "driver": (), "cuda": ("driver",)}, work)
    assert done == ["driver"]


def test_a_circle_is_refused_before_anything_begins():
    begun = []
    with pytest.raises(CycleError):
        run_in_order({"base": (), "driver": ("cuda",), "cuda": ("driver",)}, begun.append)
    assert begun == []
