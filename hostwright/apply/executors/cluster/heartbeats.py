"""Sends the state of a run to each of its workers periodically.

Each worker has a thread of its own on this machine, so that a worker that hangs does not delay others.
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
    due: int = 0
    sent: int = 0
    gone: bool = False


class Heartbeats:
    """Sends the heartbeat ``heartbeat(worker)`` to each known worker, periodically and after ``poke``.

    A worker that has a host receives a heartbeat every ``HEARTBEAT_S``. ``received(worker, heartbeat)`` is called after
    each delivery.
    """

    def __init__(
        self,
        client: Client,
        session: str,
        heartbeat: Callable[[str], Heartbeat],
        received: Callable[[str, Heartbeat], None],
    ):
        self._client, self._session, self._heartbeat, self._received = client, session, heartbeat, received
        self._change = threading.Condition()  # This condition guards the fields below.
        self._lines: dict[str, _Line] = {}
        self._over = False

    def know(self, workers: Iterable[str]) -> None:
        """Set the addresses of the workers that receive heartbeats."""
        there = set(workers)
        with self._change:
            for worker in self._lines.keys() - there:
                self._lines.pop(worker).gone = True
            for worker in set() if self._over else there - self._lines.keys():
                line = self._lines[worker] = _Line()
                threading.Thread(target=self._talk, args=(worker, line), name="heartbeat", daemon=True).start()
            self._change.notify_all()

    def poke(self, *workers: str) -> None:
        """Request a heartbeat to each of ``workers`` at once; without arguments, to all known workers."""
        with self._change:
            for worker in workers or tuple(self._lines):
                if worker in self._lines:
                    self._lines[worker].due += 1
            self._change.notify_all()

    def wait_until_sent(self, timeout_s: float) -> bool:
        """Wait until all requested heartbeats were sent. Return ``False`` if that took longer than ``timeout_s``."""
        with self._change:
            return self._change.wait_for(lambda: all(one.sent >= one.due for one in self._lines.values()), timeout_s)

    def end(self) -> None:
        """Send no further heartbeats to any worker."""
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
                with suppress(Exception):  # Dask may raise any error, and none may end the heartbeats.
                    found = self._client.run(hear, self._session, heartbeat, workers=[worker], on_error="ignore")
                    if found.get(worker):
                        self._received(worker, heartbeat)
            with self._change:
                line.sent = due
                self._change.notify_all()
