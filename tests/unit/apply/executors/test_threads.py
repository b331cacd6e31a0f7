"""Threads behind the interface of ``concurrent.futures``, and rollouts over any executor that has it."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor, as_completed, wait
from queue import SimpleQueue

import pytest

from hostwright.apply.executors.threads import DaemonThreads
from hostwright.apply.rollout.limits import Limits
from hostwright.apply.rollout.rollout import roll_out
from hostwright.common.errors import HostError, Unreachable
from hostwright.common.untrusted import Unforeseen
from tests.places import PROJECT
from tests.unit.support.gated import NAMES, WAIT_S, Aside, Hosts, nothing
from tests.unit.support.hostjobs import until


class Gate:
    """Work that begins when it is called and ends when the test says so."""

    def __init__(self) -> None:
        self.begun: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self.go = threading.Semaphore(0)

    def work(self, name: str) -> str:
        self.begun.put((name, threading.get_ident()))
        assert self.go.acquire(timeout=WAIT_S)
        return name


def test_futures_have_what_was_returned_and_raised():
    threads = DaemonThreads(4)
    good, bad = threads.submit(int, "7"), threads.submit(int, "seven", base=8)
    assert good.result(WAIT_S) == 7
    assert isinstance(bad.exception(WAIT_S), ValueError)


def test_what_is_no_error_of_the_work_is_the_futures_too_and_kills_no_thread():
    threads = DaemonThreads(1)
    assert isinstance(threads.submit(sys.exit, 3).exception(WAIT_S), SystemExit)
    assert threads.submit(int, "7").result(WAIT_S) == 7


def test_no_more_are_at_work_than_there_are_places_and_the_first_come_go_first():
    gate, threads = Gate(), DaemonThreads(2)
    futures = [threads.submit(gate.work, name) for name in NAMES[:4]]
    assert {gate.begun.get(timeout=WAIT_S)[0] for _ in range(2)} == set(NAMES[:2])
    assert gate.begun.empty()
    gate.go.release()
    assert gate.begun.get(timeout=WAIT_S)[0] == NAMES[2]
    gate.go.release(3)
    assert [future.result(WAIT_S) for future in as_completed(futures, WAIT_S)] != []
    assert [future.result() for future in futures] == list(NAMES[:4])


def test_a_thread_that_is_done_takes_the_next_and_none_stays_idle():
    before = set(threading.enumerate())
    gate, threads = Gate(), DaemonThreads(1)
    futures = [threads.submit(gate.work, name) for name in NAMES]
    gate.go.release(len(NAMES))
    wait(futures, WAIT_S)
    assert len({gate.begun.get_nowait()[1] for _ in NAMES}) == 1
    threads.shutdown()
    until(lambda: set(threading.enumerate()) <= before, "its thread, which has nothing more to do, ends")


def test_what_has_not_begun_can_be_cancelled():
    gate, threads = Gate(), DaemonThreads(1)
    first, second = threads.submit(gate.work, "gpu01"), threads.submit(gate.work, "gpu02")
    gate.begun.get(timeout=WAIT_S)
    assert (first.cancel(), second.cancel()) == (False, True)
    gate.go.release(2)
    threads.shutdown()
    assert first.result() == "gpu01"
    assert gate.begun.empty()


def test_a_shutdown_takes_nothing_more_and_may_cancel_what_waits():
    gate, threads = Gate(), DaemonThreads(1)
    first, second = threads.submit(gate.work, "gpu01"), threads.submit(gate.work, "gpu02")
    gate.begun.get(timeout=WAIT_S)
    threads.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(RuntimeError, match="was shut down"):
        threads.submit(int, "7")
    gate.go.release()
    threads.shutdown()
    assert first.result() == "gpu01"
    with pytest.raises(CancelledError):
        second.result(WAIT_S)


def test_a_host_that_hangs_for_ever_does_not_keep_the_process_from_its_end():
    program = (
        "import threading; from hostwright.apply.executors.threads import DaemonThreads; begun = threading.Event();"
        "DaemonThreads(1).submit(lambda: (begun.set(), threading.Event().wait())); begun.wait(); print('end')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    assert done.stdout == "end\n"


def named(host: str) -> str:
    """Work that another process can be sent."""
    if host == "gpu01":
        raise Unreachable(host, "no route", passing=True)
    if host == "gpu02":
        raise ZeroDivisionError(host)
    return host.upper()


class Threads(ThreadPoolExecutor):
    slots = 3


class Processes(ProcessPoolExecutor):
    slots = 2


@pytest.mark.parametrize("kind", [Threads, Processes])
def test_a_rollout_runs_on_any_executor_of_concurrent_futures(kind):
    with kind(kind.slots) as executor:
        results = roll_out(
            ["gpu00", "gpu01", "gpu02", "gpu03"],
            named,
            limits=Limits(1, 9, 9),
            emit=lambda _: None,
            stop=nothing,
            on_interrupt=nothing,
            executor=executor,
        )
    assert results.values == ("GPU00", "GPU03")
    first, second = results.errors
    assert (type(first), first.host, first.sentence) == (Unreachable, "gpu01", "no route")
    assert isinstance(first, Unreachable)
    assert first.passing
    assert (type(second), second.host) == (Unforeseen, "gpu02")


class Shrinking:
    """An executor whose places come and go, as a cluster's do."""

    def __init__(self, slots: int) -> None:
        self.now = slots
        self._asked = threading.Semaphore(0)
        self._threads = DaemonThreads(len(NAMES))

    @property
    def slots(self) -> int:
        self._asked.release()
        return self.now

    def wait_until_asked_again(self) -> None:
        """Until the loop has decided twice from now on who begins."""
        while self._asked.acquire(blocking=False):
            pass
        for _ in range(3):
            assert self._asked.acquire(timeout=WAIT_S)

    def submit(self, work, host):
        return self._threads.submit(work, host)


def test_no_more_hosts_are_in_work_than_the_executor_has_places_at_that_moment():
    hosts, executor = Hosts(), Shrinking(3)
    run = Aside(hosts, Limits(0, 9, 9), executor=executor)
    assert hosts.next(3) == set(NAMES[:3])
    executor.now = 1
    hosts.end("gpu00")
    hosts.end("gpu01")
    hosts.end("gpu02", HostError("gpu02", "no room"))
    assert hosts.next(1) == {"gpu03"}
    assert hosts.most == 3
    assert hosts.in_work == {"gpu03"}
    executor.now = 0
    hosts.end("gpu03")
    while hosts.in_work:
        executor.wait_until_asked_again()
    executor.wait_until_asked_again()
    assert hosts.begun.empty()
    executor.now = 12
    for name in NAMES[4:]:
        hosts.end(name)
    results = run.join()
    assert len(results.values) == 11
