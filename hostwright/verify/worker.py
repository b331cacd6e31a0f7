"""The processes in which the pytest of ``hostwright.verify.checking`` runs the checks of each host.

That pytest loads inventory and checks once, and then only forks and waits: it has one thread and no connection. Each
host has a process. Its checks run in that process, or in several child processes (lanes), each with its own connection.
An alarm ends each process at the host's limit, so a host that hangs does not delay others.

Measured on lab hosts (median of alternated runs; in parentheses: two hosts under load):

* Four lanes, each with a connection: 15.5 s (41.6 s); CPU of this machine 2.5 s (3.3 s), of the host 8.4 s (19.5 s).
* Four lanes that share a connection through a further process: 17.6 s (60.3 s); CPU 2.4 s (3.2 s) and 9.2 s (19.5 s).
* One process for all checks of a host takes 1.4 times as long as four lanes.
* A pytest for each host, or for each worker of pytest-xdist, takes 1.0 s of CPU before its first check.
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

LATE = -signal.SIGALRM  #: exit status of a process that reached the limit
UNREADABLE = 3  #: exit status of a process whose checks cannot be imported; its output has one error per line

Order = Mapping[str, Any]
Task = Callable[[], int]  #: returns an exit status

_FORK = multiprocessing.get_context("fork")


def serve(parent: Connection, prepare: Callable[[Order], Task]) -> None:
    """Run the task of each order in a process; answer with the order's number and the exit status.

    ``prepare`` creates the task in this process. After the order ``None``, wait for all processes and return.
    """
    running: dict[Any, tuple[int, ForkProcess]] = {}  # sentinel of a process → number of its order, and the process
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
    """Run a task in a new process, which exits with ``LATE`` after ``limit_s``."""

    def run() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        sys.exit(task())

    process = _FORK.Process(target=run)
    process.start()
    return process


def run_in_lanes(units: Sequence[Unit], lanes: int, run: Callable[[Iterator[Unit]], int]) -> int:
    """Run units of checks in ``lanes`` child processes; each takes the next unit after finishing one.

    Returns 0, or the exit status of the first failed process. The time limit of this process also ends its children.
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
    except EOFError:  # the parent was killed
        return None
    return order


def _recorded(parent: Connection, output: str, task: Task) -> Task:
    """The task with its standard output and error appended to a file. An exception is written there as one line."""

    def run() -> int:
        parent.close()  # otherwise, the parent gets no EOF if this process's pytest is killed
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        try:
            return task()
        except Exception as error:  # noqa: BLE001 - reported to the parent, and the process ends here
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return 2

    return run
