"""Sends each worker of a run, again and again, how the run stands.

Each worker has a thread of its own, so that one that hangs holds up no other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from distributed import Client

from hostwright.apply.executors.cluster.messages import Heartbeat
from hostwright.apply.executors.cluster.session import HEARTBEAT_S, hear


@dataclass(eq=False)
class _Line:
    """One worker: how many messages are due to it, and how many of them were sent."""

    due: int = 0
    sent: int = 0
    gone: bool = False


class Heartbeats:
    """Sends ``heartbeat(worker)`` to each known worker: when ``poke`` was called, and every ``HEARTBEAT_S`` while it
    has a host. ``received(worker, heartbeat)`` is called when it has arrived."""

    def __init__(
        self,
        client: Client,
        session: str,
        heartbeat: Callable[[str], Heartbeat],
        received: Callable[[str, Heartbeat], None],
    ):
        self._client, self._session, self._heartbeat, self._received = client, session, heartbeat, received
        self._change = threading.Condition()  # guards the fields below
        self._lines: dict[str, _Line] = {}
        self._over = False

    def know(self, workers: Iterable[str]) -> None:
        """Set the workers that are there."""
        there = set(workers)
        with self._change:
            for worker in self._lines.keys() - there:
                self._lines.pop(worker).gone = True
            for worker in set() if self._over else there - self._lines.keys():
                line = self._lines[worker] = _Line()
                threading.Thread(target=self._talk, args=(worker, line), name="heartbeat", daemon=True).start()
            self._change.notify_all()

    def poke(self, *workers: str) -> None:
        """Send something to these workers now; to all, if none is named."""
        with self._change:
            for worker in workers or tuple(self._lines):
                if worker in self._lines:
                    self._lines[worker].due += 1
            self._change.notify_all()

    def wait_until_sent(self, timeout_s: float) -> bool:
        """Wait until all workers that were poked have received something; whether that came true in time."""
        with self._change:
            return self._change.wait_for(lambda: all(one.sent >= one.due for one in self._lines.values()), timeout_s)

    def end(self) -> None:
        """Send nothing more."""
        with self._change:
            self._over = True
        self.know(())

    def _talk(self, worker: str, line: _Line) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: line.gone or line.due > line.sent, HEARTBEAT_S)
                if line.gone:
                    return
                due = line.due
            heartbeat = self._heartbeat(worker)
            if heartbeat.going or heartbeat.leave or due > line.sent:
                with suppress(Exception):  # whatever Dask raises: the next one may arrive
                    found = self._client.run(hear, self._session, heartbeat, workers=[worker], on_error="ignore")
                    if found.get(worker):
                        self._received(worker, heartbeat)
            with self._change:
                line.sent = due
                self._change.notify_all()
