"""Hosts side by side: each error stays with its host, and an interruption stops at once."""

import resource
import threading

import pytest

from hostwright.errors import ArtifactError, HostError, Unreachable
from hostwright.rollout import MAX_PARALLEL, on_each, window


def test_one_bad_host_keeps_no_other_from_its_work():
    def work(name: str) -> str:
        if name == "gpu02":
            raise Unreachable(name, "no route")
        if name == "gpu03":
            raise ArtifactError("run invoke mirror")
        return name.upper()

    results = on_each(["gpu01", "gpu02", "gpu03", "gpu04"], work, stop=lambda: None)
    assert results.values == ("GPU01", "GPU04")
    assert [(error.host, error.sentence) for error in results.errors] == [
        ("gpu02", "no route"),
        ("gpu03", "run invoke mirror"),
    ]


def test_hosts_do_not_wait_for_each_other():
    meeting = threading.Barrier(8, timeout=20)
    names = [f"gpu{number}" for number in range(8)]
    on_each(names, lambda _: meeting.wait(), stop=lambda: None)
    assert not meeting.broken


def test_a_bug_ends_the_run_and_cuts_the_connections():
    stopped: list[bool] = []

    def work(name: str) -> None:
        raise ZeroDivisionError(name)

    with pytest.raises(ZeroDivisionError):
        on_each(["gpu01"], work, stop=lambda: stopped.append(True))
    assert stopped == [True]


def test_the_window_is_bounded_by_hosts_by_files_and_by_the_house(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    assert window(3) == 3
    assert window(10_000) == MAX_PARALLEL
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    assert window(10_000) == 48


def test_an_error_of_a_host_is_kept_as_it_is():
    error = HostError("gpu01", "x")

    def work(name: str) -> None:
        raise error

    assert on_each(["gpu01"], work, stop=lambda: None).errors == (error,)
