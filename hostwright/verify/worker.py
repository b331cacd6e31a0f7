"""What goes on in the pytest of ``hostwright.verify.checking``: children of it run the checks of each host.

Inventory and checks are read once, by this process, which then only forks and waits: it has one thread and no
connection. A host's processes (``processes``) write a line a check to the host's file, and end. Those that hang are
ended at the limit; they hold up nobody, since every host has processes of its own.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Order = Mapping[str, Any]

LATE = -1  #: the status of a child that was ended at its limit
UNREADABLE = 3  #: that of one whose checks cannot be imported; its output says why, a line each


def opening_of(orders: int) -> Mapping[str, Any]:
    """The first line: the variables of the call (``settings``), and the passwords of Ansible Vault (``vault``)."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(orders, 1)
        if not byte:
            raise EOFError("the process that ordered the checks is gone")
        line += byte
    opening: Mapping[str, Any] = json.loads(line)
    return opening


@dataclass
class HostProcesses:
    """The processes of a host. ``alive`` is the reading end of a pipe that is closed when the last of them ends."""

    number: int
    pids: list[int]
    alive: int
    deadline: float
    late: bool = False


class Forked(Protocol):
    """What a host's checks need of processes: one for each task, which returns its exit status."""

    @property
    def tasks(self) -> Sequence[Callable[[], int]]:
        """What is done in each of them."""
        ...

    def close(self) -> None:
        """Let go of what is for them alone."""
        ...


class Worker:
    """Takes orders, a JSON line each, and answers each with its number and the exit status of its processes: 0, or that
    of the first that ended otherwise."""

    def __init__(self, orders: int, answers: int, limit_s: float, processes: Callable[[Order], Forked]):
        self._orders, self._answers, self._limit_s, self._processes = orders, answers, limit_s, processes
        self._hosts: dict[int, HostProcesses] = {}
        self._selector = selectors.DefaultSelector()
        self._begun = b""

    def run(self) -> None:
        """Until there are no more orders and every process has ended."""
        self._selector.register(self._orders, selectors.EVENT_READ)
        while self._selector.get_map():
            for key, _ in self._selector.select(self._patience_s()):
                if key.fd == self._orders:
                    self._read()
                else:
                    self._end(self._hosts[key.fd])
            for host in self._hosts.values():
                if not host.late and time.monotonic() >= host.deadline:
                    host.late = True
                    for pid in host.pids:
                        os.kill(pid, signal.SIGKILL)

    def _patience_s(self) -> float | None:
        waiting = [host.deadline for host in self._hosts.values() if not host.late]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else None

    def _read(self) -> None:
        data = os.read(self._orders, 65536)
        if not data:
            self._selector.unregister(self._orders)
            return
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._begin(json.loads(line))

    def _begin(self, order: Order) -> None:
        alive, closed_at_end = os.pipe()
        processes = self._processes(order)
        pids = []
        for task in processes.tasks:
            pid = os.fork()
            if pid == 0:
                self._be_child(order, alive, task)
            pids.append(pid)
        processes.close()
        os.close(closed_at_end)
        self._hosts[alive] = HostProcesses(order["number"], pids, alive, time.monotonic() + self._limit_s)
        self._selector.register(alive, selectors.EVENT_READ)

    def _be_child(self, order: Order, alive: int, task: Callable[[], int]) -> None:
        """The rest of a child's life. It never returns into the loop of its parent."""
        status = 2
        try:
            output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            for theirs in (alive, self._orders, self._answers, *self._hosts):
                os.close(theirs)
            status = task()
        except BaseException as error:  # noqa: BLE001 - told to who ordered it; the process ends here
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)

    def _end(self, host: HostProcesses) -> None:
        self._selector.unregister(host.alive)
        os.close(host.alive)
        del self._hosts[host.alive]
        ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in host.pids]
        status = LATE if host.late else next((status for status in ended if status), 0)
        os.write(self._answers, json.dumps({"number": host.number, "status": status}).encode() + b"\n")
