"""Runs the checks of each host in a process that pytest (``hostwright.verify.checking``) forks.

pytest loads inventory and checks once. Afterwards it only forks processes and waits for them: it has one thread and no
connection. The checks of a host run in the host's process, or in several child processes (lanes) with their own
connections. An alarm ends each process at the host's time limit.

Measured on lab hosts: four lanes with a connection each take 15.5 s, four lanes that share a connection 17.6 s, and one
process 1.4 times as long as four lanes. A pytest for each host takes 1.0 s of CPU before its first check.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any

from hostwright.verify.units import Unit

LATE = -signal.SIGALRM  #: exit status of a process that reached its time limit
UNREADABLE = 3  #: exit status of a process that cannot import its checks. Each line of the output is one error.

Order = Mapping[str, Any]
Task = Callable[[], int]  #: function that does the work of one process and returns the exit status

_FORK = multiprocessing.get_context("fork")


def serve(parent: Connection, prepare: Callable[[Order], Task]) -> None:
    """Run a task in a new process for each order from ``parent``, and send back the order's number and the exit status.

    ``prepare`` creates the task from the order in this process. The order ``None`` ends the loop once all processes
    have ended.
    """
    running: dict[Any, tuple[int, ForkProcess]] = {}
    waiting: list[Connection] = [parent]
    while waiting or running:
        for ready in wait([*waiting, *running]):
            if ready is not parent:
                number, process = running.pop(ready)
                process.join()
                parent.send((number, process.exitcode))
                process.close()
            elif order := _next_order(parent):
                process = start(_recorded(parent, order["output"], prepare(order)), order["limit_s"])
                running[process.sentinel] = (order["number"], process)
            else:
                waiting.clear()


def start(task: Task, limit_s: float) -> ForkProcess:
    """Start a process that runs ``task``. After ``limit_s``, the process exits with ``LATE``."""

    def run() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        sys.exit(task())

    process = _FORK.Process(target=run)
    process.start()
    return process


def run_in_lanes(units: Sequence[Unit], lanes: int, run: Callable[[Iterator[Unit]], int]) -> int:
    """Run units of checks with ``run`` in ``lanes`` child processes. Each child takes the next unit when it is free.

    Return 0, or the exit status of the first failed child.
    """
    begun = _FORK.Value("L", 0)

    def remaining() -> Iterator[Unit]:
        while True:
            with begun.get_lock():
                number = begun.value
                begun.value += 1
            if number >= len(units):
                return
            yield units[number]

    left_s, _ = signal.getitimer(signal.ITIMER_REAL)
    processes = [start(lambda: run(remaining()), left_s) for _ in range(lanes)]
    for process in processes:
        process.join()
    return next((process.exitcode for process in processes if process.exitcode), 0)


def _next_order(parent: Connection) -> Order | None:
    try:
        order: Order | None = parent.recv()
    except EOFError:  # This error means that the parent process was killed.
        return None
    return order


def _recorded(parent: Connection, output: str, task: Task) -> Task:
    def run() -> int:
        # While this process keeps the pipe open, the parent cannot detect that pytest was killed.
        parent.close()
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        try:
            return task()
        except Exception as error:  # noqa: BLE001 - reported to the parent, and the process ends here
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return 2

    return run
