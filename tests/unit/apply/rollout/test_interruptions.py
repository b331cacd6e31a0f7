"""Ctrl-C and SIGTERM: the first finishes what runs, the second cuts, none is lost, and the process really ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostwright.apply import events
from hostwright.apply.events import HostEnded
from hostwright.apply.executors.signals import SIGNALS
from hostwright.apply.rollout import rollout
from hostwright.apply.rollout.limits import LEFT_ALONE, STOPPED_BY_OPERATOR, Limits
from hostwright.apply.rollout.rollout import CUT_OFF, UNENDED, Interrupted, on_each, roll_out
from hostwright.common.errors import HostError, Stopped, Unreachable
from tests.unit.support.gated import NAMES, WAIT_S, nothing
from tests.unit.support.heard import heard

FREE = Limits(canary=0, batch=12, max_fail=12)
PROJECT = Path(__file__).parents[4]


@pytest.fixture
def handlers() -> Iterator[dict[int, object]]:
    with heard(*SIGNALS) as ours:
        yield ours


def interrupt(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.usefixtures("handlers")
def test_the_first_ctrl_c_lets_those_in_work_finish_and_begins_nobody(number):
    asked, calls, seen = threading.Event(), [], []
    both = threading.Barrier(2, timeout=WAIT_S)

    def on_interrupt() -> None:
        calls.append("gently")
        asked.set()

    def work(name: str) -> str:
        both.wait()
        if name == "gpu00":
            interrupt(number)
        assert asked.wait(WAIT_S)
        if name == "gpu01":
            raise Stopped(name, "stopped before cuda")
        return name

    results = roll_out(
        NAMES,
        work,
        limits=Limits(0, 2, 0),
        emit=seen.append,
        stop=lambda: calls.append("stop"),
        on_interrupt=on_interrupt,
    )
    assert calls == ["gently"]
    assert results.values == ("gpu00",)
    assert [type(error) for error in results.errors] == [Stopped]
    assert results.untouched == NAMES[2:]
    assert results.stopped_because == STOPPED_BY_OPERATOR
    untouched = [HostEnded(name, "untouched", STOPPED_BY_OPERATOR) for name in NAMES[2:]]
    assert [event for event in seen if event.host in NAMES[2:]] == untouched
    assert HostEnded("gpu01", "stopped", "stopped before cuda") in seen


@pytest.mark.usefixtures("handlers")
def test_the_first_ctrl_c_does_not_wait_for_a_host_that_is_left_alone():
    """Whatever comes of it afterwards, a value or an error, is of no meaning."""
    both, alone, late, seen = threading.Barrier(2, timeout=WAIT_S), threading.Event(), threading.Event(), []

    def work(name: str) -> str:
        both.wait()
        if name == "gpu00":
            interrupt()
            assert alone.wait(WAIT_S)
            late.set()
        elif name == "gpu01":
            assert late.wait(WAIT_S)
        return name

    def detach() -> tuple[str, ...]:
        alone.set()
        return ("gpu00", "gpu07")

    results = roll_out(
        NAMES, work, limits=Limits(0, 2, 0), emit=seen.append, stop=nothing, on_interrupt=nothing, detach=detach
    )
    assert results.values == ("gpu01",)
    assert [str(error) for error in results.errors] == [f"gpu00: {LEFT_ALONE}"]
    assert results.untouched == NAMES[2:]
    assert [event for event in seen if event.host == "gpu00"] == [HostEnded("gpu00", "stopped", LEFT_ALONE)]


@pytest.mark.usefixtures("handlers")
def test_a_host_that_was_left_alone_may_end_while_the_others_are_cut():
    both, cut, seen = threading.Barrier(2, timeout=WAIT_S), threading.Event(), []

    def work(name: str) -> str:
        both.wait()
        if name == "gpu00":
            interrupt()
        assert cut.wait(WAIT_S)
        raise Stopped(name, LEFT_ALONE if name == "gpu00" else "the connection was cut")

    def detach() -> tuple[str, ...]:
        interrupt()
        return ("gpu00",)

    with pytest.raises(Interrupted) as stopped:
        roll_out(
            NAMES, work, limits=Limits(0, 2, 0), emit=seen.append, stop=cut.set, on_interrupt=nothing, detach=detach
        )
    assert [str(error) for error in stopped.value.results.errors] == [f"gpu00: {LEFT_ALONE}", f"gpu01: {CUT_OFF}"]
    assert [event for event in seen if event.host == "gpu00"] == [HostEnded("gpu00", "stopped", LEFT_ALONE)]


@pytest.mark.usefixtures("handlers")
def test_the_second_ctrl_c_cuts_and_tells_of_every_host():
    cut, calls, seen = threading.Event(), [], []
    both = threading.Barrier(2, timeout=WAIT_S)

    def on_interrupt() -> None:
        calls.append("gently")
        interrupt()

    def stop() -> None:
        calls.append("stop")
        cut.set()

    def work(name: str) -> str:
        both.wait()
        if name == "gpu00":
            interrupt()
        assert cut.wait(WAIT_S)
        raise (Unreachable(name, "the connection was lost") if name == "gpu00" else HostError(name, "no room"))

    with pytest.raises(Interrupted) as stopped:
        roll_out(NAMES[:4], work, limits=Limits(0, 2, 4), emit=seen.append, stop=stop, on_interrupt=on_interrupt)
    assert [str(error) for error in stopped.value.results.errors] == [f"gpu00: {CUT_OFF}", "gpu01: no room"]
    assert stopped.value.results.untouched == ("gpu02", "gpu03")
    assert calls == ["gently", "stop"]
    assert sorted(seen, key=lambda event: event.host) == [
        HostEnded("gpu00", "stopped", CUT_OFF),
        HostEnded("gpu01", "failed", "no room"),
        HostEnded("gpu02", "untouched", STOPPED_BY_OPERATOR),
        HostEnded("gpu03", "untouched", STOPPED_BY_OPERATOR),
    ]


@pytest.mark.usefixtures("handlers")
def test_a_reading_verb_ends_at_the_first_ctrl_c():
    cut = threading.Event()

    def work(name: str) -> None:
        interrupt()
        assert cut.wait(WAIT_S)

    with pytest.raises(KeyboardInterrupt):
        on_each(["gpu01"], work, stop=cut.set)
    assert cut.is_set()


@pytest.mark.usefixtures("handlers")
def test_a_reading_verb_keeps_what_it_knew_before_ctrl_c_and_nothing_that_the_cut_made():
    cut, failed = threading.Event(), threading.Event()

    def work(name: str) -> str:
        if name == "gpu01":
            failed.set()
            raise HostError(name, "no room")
        if name == "gpu02":
            assert failed.wait(WAIT_S)
            interrupt()
        assert cut.wait(WAIT_S)
        return "the connection was lost"

    names = ["gpu00", "gpu01", "gpu02", "gpu03"]
    with pytest.raises(Interrupted) as stopped:
        on_each(names, work, stop=cut.set, at_once=3)
    told = {error.host: error.sentence for error in stopped.value.results.errors}
    assert told == dict.fromkeys(names, UNENDED) | {"gpu01": "no room"}
    assert stopped.value.results.values == ()


@pytest.mark.usefixtures("handlers")
def test_a_reading_verb_that_ends_with_its_last_host_has_all_of_them():
    def work(name: str) -> str:
        return name

    def result(done: str) -> str:
        interrupt()
        return "changed"

    run = rollout._Rollout(
        ["gpu01"], work, FREE, emit=nothing, stop=nothing, on_interrupt=None, silent=rollout._nobody, result=result
    )
    with pytest.raises(Interrupted) as stopped:
        run.run()
    assert (stopped.value.results.values, stopped.value.results.errors) == (("gpu01",), ())
    assert stopped.value.results.stopped_because == STOPPED_BY_OPERATOR, "nothing is begun after it"


@pytest.mark.usefixtures("handlers")
def test_a_third_ctrl_c_ends_even_the_wait_for_the_cut(monkeypatch):
    monkeypatch.setattr(rollout, "CUT_S", 1e6)
    release = threading.Event()

    def stop() -> None:
        interrupt()
        release.wait(WAIT_S)

    def work(name: str) -> None:
        interrupt()
        release.wait(WAIT_S)

    with pytest.raises(KeyboardInterrupt):
        roll_out(["gpu01"], work, limits=FREE, emit=lambda _: None, stop=stop, on_interrupt=interrupt)
    release.set()


@pytest.mark.usefixtures("handlers")
def test_an_interruption_after_the_last_end_is_not_lost():
    calls: list[str] = []

    def emit(event: events.Event) -> None:
        interrupt()

    def work(name: str) -> None:
        raise HostError(name, "x")

    results = roll_out(
        ["gpu01"], work, limits=FREE, emit=emit, stop=nothing, on_interrupt=lambda: calls.append("gently")
    )
    assert calls == ["gently"]
    assert results.stopped_because == STOPPED_BY_OPERATOR
    assert results.untouched == ()


@pytest.mark.usefixtures("handlers")
def test_no_interruption_is_lost_whenever_it_comes():
    """Somebody presses Ctrl-C at a random moment of many short runs: each is told exactly once."""
    dice = random.Random(7)  # noqa: S311 - repeatable, not secret
    for _ in range(60):
        victim, calls = dice.choice(NAMES), []

        def work(name: str, victim: str = victim) -> str:
            if name == victim:
                interrupt()
            return name

        def on_interrupt(calls: list[str] = calls) -> None:
            calls.append("gently")

        limits = Limits(dice.randrange(3), dice.randrange(1, 5), 0)
        results = roll_out(NAMES, work, limits=limits, emit=lambda _: None, stop=nothing, on_interrupt=on_interrupt)
        assert calls == ["gently"]
        assert results.stopped_because == STOPPED_BY_OPERATOR
        assert set(results.values) | set(results.untouched) == set(NAMES)
        assert len(results.values) + len(results.untouched) == len(NAMES)


@pytest.mark.usefixtures("handlers")
def test_a_signal_that_is_ignored_stays_ignored():
    def work(name: str) -> str:
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        interrupt()
        return name

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        results = roll_out(["gpu01"], work, limits=FREE, emit=lambda _: None, stop=nothing, on_interrupt=nothing)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (results.values, results.stopped_because) == (("gpu01",), "")


# ---------------------------------------------------------------- a process that was told to end ends

PROGRAM = """
import signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from hostwright.apply import events
from hostwright.apply.rollout.limits import Limits
from hostwright.apply.rollout.rollout import on_each, roll_out
from hostwright.apply.rollout.silence import Silence

def say(text):
    print(text, flush=True)

def hang(name):
    say("begun")
    while True:
        time.sleep(1000)

def stop():
    say("cut")
    threading.Event().wait()  # not even this ends

try:
    with Silence(lambda event: None) as silence:
        CALL
except KeyboardInterrupt:
    say("interrupted")
    raise SystemExit(130)
"""
ROLL_OUT = (
    'roll_out(["gpu01"], hang, limits=Limits(0, 1, 1), emit=silence, stop=stop, '
    'on_interrupt=lambda: say("finishing"), silent=silence.hosts)'
)
ON_EACH = 'on_each(["gpu01"], hang, stop=stop)'


@pytest.mark.parametrize(
    ("call", "number", "said"),
    [
        (ROLL_OUT, signal.SIGINT, ["begun", "finishing", "cut"]),
        (ROLL_OUT, signal.SIGTERM, ["begun", "finishing", "cut"]),
        (ON_EACH, signal.SIGINT, ["begun", "cut"]),
    ],
    ids=["rollout-ctrl-c", "rollout-sigterm", "reading-ctrl-c"],
)
def test_the_process_exits_although_a_worker_and_the_cut_hang_for_ever(call: str, number: int, said: list[str]):
    program = PROGRAM.replace("CALL", call)
    read: Callable[[], str]
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        read = process.stdout.readline
        try:
            for line in said[:-1]:
                assert read().strip() == line
                process.send_signal(number)
            assert read().strip() == said[-1]
            assert read().strip() == "interrupted"
            assert process.wait(WAIT_S) == 130
        finally:
            process.kill()
