"""Hosts side by side: each error stays with its host, the window slides, and a bad rollout stops."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply import events
from hostwright.apply.events import HostEnded
from hostwright.apply.rollout import rollout
from hostwright.apply.rollout.applying import status_of
from hostwright.apply.rollout.limits import Limits
from hostwright.apply.rollout.rollout import BROKEN_OFF, CUT_OFF, Results, on_each, result_of, roll_out
from hostwright.apply.rollout.silence import Silence
from hostwright.apply.run import Listener
from hostwright.common.errors import (
    DIFFERS,
    FAILED,
    ArtifactError,
    HostError,
    Locked,
    SeveralFailed,
    StepFailed,
    Stopped,
    Unreachable,
)
from hostwright.common.errors import FailedStep as Step
from hostwright.common.untrusted import Unforeseen
from tests.unit.support.gated import NAMES, WAIT_S, Aside, Hosts, nothing

# ---------------------------------------------------------------- the reading verbs


def test_one_bad_host_keeps_no_other_from_its_work():
    def work(name: str) -> str:
        if name == "gpu02":
            raise Unreachable(name, "no route")
        if name == "gpu03":
            raise ArtifactError("run invoke mirror")
        return name.upper()

    results = on_each(["gpu01", "gpu02", "gpu03", "gpu04"], work, stop=nothing)
    assert results.values == ("GPU01", "GPU04")
    assert [(error.host, error.sentence) for error in results.errors] == [
        ("gpu02", "no route"),
        ("gpu03", "run invoke mirror"),
    ]
    assert (results.untouched, results.stopped_because) == ((), "")


def test_hosts_do_not_wait_for_each_other():
    meeting = threading.Barrier(8, timeout=WAIT_S)
    names = [f"gpu{number}" for number in range(8)]
    assert len(on_each(names, lambda _: meeting.wait(), stop=nothing).values) == 8
    assert not meeting.broken


def test_each_result_is_told_as_soon_as_it_is_there():
    done = {name: threading.Event() for name in ("gpu01", "gpu02")}
    said: list[str] = []

    def work(name: str) -> str:
        if name == "gpu02":
            raise Unreachable(name, "no route")
        return name

    def last(name: str) -> str:
        assert name != "gpu03" or all(event.wait(WAIT_S) for event in done.values())
        return work(name)

    def told(result: str | HostError) -> None:
        said.append(str(result))
        done.get(result.host if isinstance(result, HostError) else result, threading.Event()).set()

    assert on_each(["gpu01", "gpu02", "gpu03"], last, stop=nothing, on_result=told).values == ("gpu01", "gpu03")
    assert (sorted(said[:2]), said[2:]) == (["gpu01", "gpu02: no route"], ["gpu03"])


UNFORESEEN = [
    ZeroDivisionError("gpu02"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    RecursionError("maximum recursion depth exceeded"),
    OverflowError("int too large"),
    MemoryError(),
    KeyError("gpu02"),
    BrokenPipeError(32, "Broken pipe"),
    AssertionError(),
    StopIteration(),
]


@pytest.mark.parametrize("error", UNFORESEEN, ids=lambda error: type(error).__name__)
def test_what_nobody_foresaw_is_the_error_of_its_host_and_of_no_other(error):
    def work(name: str) -> str:
        if name == "gpu02":
            raise error
        return name

    results = on_each(["gpu01", "gpu02", "gpu03"], work, stop=nothing)
    assert results.values == ("gpu01", "gpu03")
    (caught,) = results.errors
    assert (type(caught), caught.host, caught.__cause__) == (Unforeseen, "gpu02", error)
    assert type(error).__name__ in caught.sentence
    assert "\n" not in caught.sentence
    kept = Path(caught.sentence.rpartition("details in ")[2].rstrip(")"))
    assert type(error).__name__ in kept.read_text().splitlines()[-1]
    assert "in work" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_what_is_no_error_of_a_host_ends_the_run_and_cuts_the_connections():
    stopped: list[bool] = []

    def work(name: str) -> None:
        raise SystemExit(name)

    with pytest.raises(SystemExit):
        on_each(["gpu01"], work, stop=lambda: stopped.append(True))
    assert stopped == [True]


def test_a_view_that_fails_in_a_hosts_thread_ends_the_run_and_is_no_error_of_the_host():
    def not_responding(event: events.Event) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError), Listener(not_responding).shown(()) as emit:
        on_each(["gpu01", "gpu02"], lambda name: emit(HostEnded(name, "changed")), stop=nothing)


def test_an_error_of_a_host_is_kept_as_it_is():
    error = HostError("gpu01", "x")

    def work(name: str) -> None:
        raise error

    assert on_each(["gpu01"], work, stop=nothing).errors == (error,)


def test_no_hosts_are_no_trouble():
    assert on_each([], lambda name: name, stop=nothing) == Results((), ())


# ---------------------------------------------------------------- rolling out


def test_a_rollout_without_trouble_goes_over_all_hosts_in_order():
    hosts = Hosts()
    for name in NAMES:
        hosts.end(name)
    results = Aside(hosts, Limits(1, 3, 0)).join()
    assert results == Results(NAMES, (), (), "", NAMES)
    assert hosts.most <= 3
    assert hosts.seen == []  # a good end is for the work itself to report


def test_the_window_slides_and_is_no_lock_step():
    hosts = Hosts()
    run = Aside(hosts, Limits(0, 3, 12), NAMES[:8])
    assert hosts.next(3) == {"gpu00", "gpu01", "gpu02"}
    for following in NAMES[3:8]:  # gpu00 takes as long as all the others together
        hosts.end(sorted(hosts.in_work)[1])
        assert hosts.next(1) == {following}
    for name in NAMES[:8]:
        hosts.end(name)
    assert run.join().values == NAMES[:8]
    assert hosts.most == 3


def test_nobody_begins_before_the_canary_ended_well():
    hosts = Hosts()
    run = Aside(hosts, Limits(1, 12, 12))
    assert hosts.next(1) == {"gpu00"}
    assert hosts.in_work == {"gpu00"}
    hosts.end("gpu00")
    assert hosts.next(11) == set(NAMES[1:])
    for name in NAMES[1:]:
        hosts.end(name)
    assert len(run.join().values) == 12


def test_a_canary_that_fails_leaves_all_others_untouched():
    hosts = Hosts()
    hosts.end("gpu00", HostError("gpu00", "the driver does not load"))
    results = Aside(hosts, Limits(1, 12, 12)).join()
    assert results.stopped_because == "a canary failed: gpu00"
    assert results.untouched == NAMES[1:]
    assert hosts.next(1) == {"gpu00"} and hosts.begun.empty()
    assert hosts.seen == [
        HostEnded("gpu00", "failed", "the driver does not load"),
        *(HostEnded(name, "untouched", "a canary failed: gpu00") for name in NAMES[1:]),
    ]


def test_spent_budget_finishes_running_hosts_and_lists_the_rest():
    hosts = Hosts()
    run = Aside(hosts, Limits(0, 4, 1))
    hosts.next(4)
    hosts.end("gpu00", Unreachable("gpu00", "no route"))
    assert hosts.next(1) == {"gpu04"}
    hosts.end("gpu01", HostError("gpu01", "no room"))
    run.thread.join(0.05)
    assert run.thread.is_alive()
    hosts.end("gpu02")
    hosts.end("gpu03", HostError("gpu03", "no room either"))
    hosts.end("gpu04")
    results = run.join()
    assert results.values == ("gpu02", "gpu04")
    assert [error.host for error in results.errors] == ["gpu00", "gpu01", "gpu03"]
    assert results.untouched == NAMES[5:]
    assert results.stopped_because == "too many failures: 3 hosts failed, --max-fail allows 1"
    assert sorted(hosts.ended) == [
        ("gpu00", "unreachable"),
        ("gpu01", "failed"),
        ("gpu03", "failed"),
        *((name, "untouched") for name in NAMES[5:]),
    ]
    assert run.stops == 0


def test_errors_that_are_no_hosts_count_and_carry_their_host():
    hosts = Hosts()
    hosts.end("gpu00", ArtifactError("run invoke mirror"))
    results = Aside(hosts, Limits(0, 1, 0)).join()
    assert [(error.host, error.sentence) for error in results.errors] == [("gpu00", "run invoke mirror")]
    assert hosts.seen[0] == HostEnded("gpu00", "failed", "run invoke mirror")
    assert results.stopped_because == "too many failures: 1 host failed, --max-fail allows 0"


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (Unreachable("gpu01", "x"), "unreachable"),
        (Stopped("gpu01", "x"), "stopped"),
        (HostError("gpu01", "x"), "failed"),
        (StepFailed("gpu01", "x", Step("cuda", "x", "x", 1)), "failed"),
        (SeveralFailed("gpu01", [Stopped("gpu01", "x"), Stopped("gpu01", "y")]), "stopped"),
        (SeveralFailed("gpu01", [Stopped("gpu01", "x"), Unreachable("gpu01", "y")]), "unreachable"),
        (SeveralFailed("gpu01", [Unreachable("gpu01", "x"), HostError("gpu01", "y")]), "failed"),
        (SeveralFailed("gpu01", [Unreachable("gpu01", "x"), ArtifactError("y")]), "failed"),
    ],
)
def test_what_an_error_makes_of_a_host(error, result):
    assert result_of(error) == result
    assert result in events.RESULTS


def test_what_ends_the_run_stops_it_and_every_host_is_accounted_for(monkeypatch):
    monkeypatch.setattr(rollout, "CUT_S", 0.3)
    hosts = Hosts()
    run = Aside(hosts, Limits(0, 3, 12), NAMES[:6])
    hosts.next(3)
    hosts.end("gpu01", SystemExit("oh"))
    run.thread.join(WAIT_S)
    assert isinstance(run.error, SystemExit)
    assert run.stops == 1
    assert hosts.begun.empty()
    assert hosts.seen == [
        HostEnded("gpu01", "failed", "internal error of Hostwright: SystemExit('oh')"),
        HostEnded("gpu00", "stopped", CUT_OFF),
        HostEnded("gpu02", "stopped", CUT_OFF),
        *(HostEnded(name, "untouched", BROKEN_OFF) for name in NAMES[3:6]),
    ]
    for name in ("gpu00", "gpu02"):
        hosts.end(name)


def test_a_canary_on_which_something_unforeseen_happens_has_failed():
    hosts = Hosts()
    run = Aside(hosts, Limits(1, 1, 0), NAMES[:2])
    hosts.end("gpu00", ZeroDivisionError("oh"))
    run.thread.join(WAIT_S)
    assert run.error is None
    assert "ZeroDivisionError: oh" in hosts.seen[0].sentence
    assert [(event.host, event.result) for event in hosts.seen] == [("gpu00", "failed"), ("gpu01", "untouched")]


def test_a_view_that_fails_ends_the_run_too():
    hosts, stops = Hosts(), []

    def emit(event: events.Event) -> None:
        raise BrokenPipeError

    hosts.end("gpu00", HostError("gpu00", "x"))
    with pytest.raises(BrokenPipeError):
        roll_out(
            NAMES, hosts.work, limits=Limits(0, 1, 0), emit=emit, stop=lambda: stops.append(1), on_interrupt=nothing
        )
    assert stops == [1]


# ---------------------------------------------------------------- silent hosts


def test_slot_of_a_silent_host_is_lent_once():
    hosts = Hosts()
    run = Aside(hosts, Limits(0, 2, 12), NAMES[:6])
    assert hosts.next(2) == {"gpu00", "gpu01"}
    run.silent.add("gpu00")
    assert hosts.next(1) == {"gpu02"}
    run.silent.clear()  # it lives after all: three are in work
    hosts.end("gpu01")
    hosts.end("gpu02")
    assert hosts.next(1) == {"gpu03"}
    hosts.end("gpu00")
    assert hosts.next(1) == {"gpu04"}
    assert hosts.in_work == {"gpu03", "gpu04"}
    for name in NAMES[3:6]:
        hosts.end(name)
    assert run.join().values == NAMES[:6]
    assert hosts.most == 3


def test_hung_host_holds_up_no_other_and_fails_at_its_timeout():
    others_ended, seen = threading.Event(), []
    left = set(NAMES[1:])

    with Silence(seen.append, after_s=0.05) as silence:

        def work(name: str) -> str:
            silence(events.Waiting(name, "a connection"))
            if name == "gpu00":
                assert others_ended.wait(WAIT_S)  # with one slot, and that not lent, it would wait for itself
                raise Unreachable(name, "the host hangs")
            silence(HostEnded(name, "changed"))
            left.discard(name)
            if not left:
                others_ended.set()
            return name

        results = roll_out(
            NAMES,
            work,
            limits=Limits(0, 1, 12),
            emit=silence,
            stop=nothing,
            on_interrupt=nothing,
            silent=silence.hosts,
        )
    assert results.values == NAMES[1:]
    assert [error.host for error in results.errors] == ["gpu00"]
    assert next(event.host for event in seen if isinstance(event, events.Silent)) == "gpu00"


# ---------------------------------------------------------------- any course


OUTCOMES = st.sampled_from(["good", "good", "good", "failed", "unreachable", "artifact"])


def outcome(kind: str, name: str) -> Exception | None:
    errors = {"failed": HostError(name, "x"), "unreachable": Unreachable(name, "x"), "artifact": ArtifactError("x")}
    return errors.get(kind)


@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    st.builds(Limits, canary=st.integers(0, 3), batch=st.integers(1, 5), max_fail=st.integers(0, 6)),
    st.integers(0, 12),
)
def test_any_outcomes_in_any_order_keep_the_limits(data, limits, number):
    """The hosts end one by one as drawn; after each, exactly those that may be in work come to be in work."""
    names, hosts = NAMES[:number], Hosts()
    run = Aside(hosts, limits, names)
    begun: list[str] = []
    good: set[str] = set()
    failures: list[str] = []
    running: set[str] = set()
    while True:
        canaries = names[: limits.canary]
        stopped = len(failures) > limits.max_fail or bool(set(failures) & set(canaries))
        reach = len(names) if set(canaries) <= good else len(canaries)
        room = 0 if stopped else min(limits.batch - len(running), reach - len(begun))
        fresh = hosts.next(room)
        assert fresh == set(names[len(begun) : len(begun) + room])
        begun += sorted(fresh)
        running |= fresh
        assert len(running) <= limits.batch
        if not running:
            break
        name, kind = data.draw(st.sampled_from(sorted(running))), data.draw(OUTCOMES)
        running.remove(name)
        hosts.end(name, outcome(kind, name))
        good |= {name} if kind == "good" else set()
        if kind != "good":
            failures.append(name)
            while hosts.told.get(timeout=WAIT_S) != name:  # what ends after it also counts after it
                pass
    results = run.join()
    assert hosts.begun.empty()
    assert hosts.most <= limits.batch
    assert set(results.values) == good
    assert {error.host for error in results.errors} == set(failures)
    assert (*begun, *results.untouched) == names
    assert bool(results.stopped_because) == stopped
    told = [name for name, _ in hosts.ended]
    assert sorted(told) == sorted({*failures, *results.untouched})


def test_a_failure_may_be_a_value():
    """A canary whose work says in its value that it failed stops the run like one that raises."""
    done = roll_out(
        ["gpu01", "gpu02"], lambda name: f"{name} is broken", limits=Limits(canary=1, batch=1, max_fail=2),
        emit=lambda _: None, stop=lambda: None, on_interrupt=lambda: None, result=lambda _: "failed",
    )  # fmt: skip
    assert (done.values, done.errors, done.untouched) == (("gpu01 is broken",), (), ("gpu02",))
    assert "canary" in done.stopped_because


@pytest.mark.parametrize(
    ("errors", "status"),
    [
        ((Locked("gpu01", "RMA"),), DIFFERS),
        ((Locked("gpu01", "RMA"), HostError("gpu02", "disk full")), FAILED),
    ],
)
def test_a_run_that_only_left_locked_hosts_out_did_not_fail(errors, status):
    assert status_of(Results((), errors)) == status
