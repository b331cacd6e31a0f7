"""What goes on in the pytest of ``hostwright.verify.checking``: a child for each host that is ordered runs its checks.

Inventory and checks are read once, by this process, which then only forks and waits: it has one thread and no
connection. A host's child connects, writes a line a check to the host's file, and ends. One that hangs is ended at its
limit; it holds up nobody, since every host has a process of its own.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
class Child:
    """A host's process. ``alive`` is the reading end of a pipe that is closed when it ends."""

    number: int
    pid: int
    alive: int
    deadline: float
    late: bool = False


class Worker:
    """Takes orders, a JSON line each, and answers each with its number and the exit status of its child."""

    def __init__(self, orders: int, answers: int, limit_s: float, work: Callable[[Order], int]):
        self._orders, self._answers, self._limit_s, self._work = orders, answers, limit_s, work
        self._children: dict[int, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._begun = b""

    def carry_out(self) -> None:
        """Until there are no more orders and every child has ended."""
        self._selector.register(self._orders, selectors.EVENT_READ)
        while self._selector.get_map():
            for key, _ in self._selector.select(self._patience_s()):
                if key.fd == self._orders:
                    self._read()
                else:
                    self._end(self._children[key.fd])
            for child in self._children.values():
                if not child.late and time.monotonic() >= child.deadline:
                    child.late = True
                    os.kill(child.pid, signal.SIGKILL)

    def _patience_s(self) -> float | None:
        waiting = [child.deadline for child in self._children.values() if not child.late]
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
        pid = os.fork()
        if pid == 0:
            self._be_child(order, alive)
        os.close(closed_at_end)
        self._children[alive] = Child(order["number"], pid, alive, time.monotonic() + self._limit_s)
        self._selector.register(alive, selectors.EVENT_READ)

    def _be_child(self, order: Order, alive: int) -> None:
        """The rest of a child's life. It never returns into the loop of its parent."""
        status = 2
        try:
            output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            for theirs in (alive, self._orders, self._answers):
                os.close(theirs)
            status = self._work(order)
        except BaseException as error:  # noqa: BLE001 - told to who ordered it; the process ends here
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)

    def _end(self, child: Child) -> None:
        self._selector.unregister(child.alive)
        os.close(child.alive)
        del self._children[child.alive]
        _, ended = os.waitpid(child.pid, 0)
        status = LATE if child.late else os.waitstatus_to_exitcode(ended)
        os.write(self._answers, json.dumps({"number": child.number, "status": status}).encode() + b"\n")
