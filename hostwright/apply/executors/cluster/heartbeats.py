"""Sends each worker of a run, again and again, how the run stands.

Each worker has a thread of its own, so that one that hangs holds up no other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from distributed import Client

from hostwright.apply.executors.cluster.desk import WORD_S, hear
from hostwright.apply.executors.cluster.errand import Word


@dataclass(eq=False)
class _Line:
    """One worker: how many messages are due to it, and how many of them were sent."""

    due: int = 0
    sent: int = 0
    gone: bool = False


class Heartbeats:
    """Sends ``word(worker)`` to each known worker: when ``poke`` was called, and every ``WORD_S`` while it has a host.
    ``received(worker, word)`` is called when it has arrived."""

    def __init__(self, client: Client, desk: str, word: Callable[[str], Word], received: Callable[[str, Word], None]):
        self._client, self._desk, self._word, self._received = client, desk, word, received
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
                self._change.wait_for(lambda: line.gone or line.due > line.sent, WORD_S)
                if line.gone:
                    return
                due = line.due
            word = self._word(worker)
            if word.going or word.leave or due > line.sent:
                with suppress(Exception):  # whatever Dask raises: the next one may arrive
                    found = self._client.run(hear, self._desk, word, workers=[worker], on_error="ignore")
                    if found.get(worker):
                        self._received(worker, word)
            with self._change:
                line.sent = due
                self._change.notify_all()
