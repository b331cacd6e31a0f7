"""Tells each worker of a run, again and again, how the run stands.

Each worker has a coroutine of the cluster's client, so that one that hangs holds up no other.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from distributed import Client

from hostwright.apply.executors.cluster.desk import WORD_S, hear
from hostwright.apply.executors.cluster.errand import Word


class Speaking:
    """Says ``word(worker)`` to each worker that is known: when it was poked, and every ``WORD_S`` where a host is
    there. ``heard(worker, word)`` is called when it was heard."""

    def __init__(self, client: Client, desk: str, word: Callable[[str], Word], heard: Callable[[str, Word], None]):
        self._client, self._desk, self._word, self._heard = client, desk, word, heard
        loop: Any = client.loop  # tornado's, around the one of asyncio
        self._loop: asyncio.AbstractEventLoop = loop.asyncio_loop
        self._lock = threading.Condition()  # guards the fields below
        self._poked: dict[str, asyncio.Event] = {}
        self._talks: dict[str, Future[Any]] = {}
        self._due: set[str] = set()  #: workers that were poked and have not heard since
        self._over = False

    def know(self, workers: Iterable[str]) -> None:
        """These workers are there, and no others."""
        there = set(workers)
        with self._lock:
            if self._over:
                return
            for worker in set(self._talks) - there:
                self._talks.pop(worker).cancel()
                del self._poked[worker]
                self._due.discard(worker)
            self._lock.notify_all()
            for worker in there - set(self._talks):
                self._poked[worker] = asyncio.Event()
                self._talks[worker] = asyncio.run_coroutine_threadsafe(self._talk(worker), self._loop)

    def poke(self, worker: str) -> None:
        """Say something to this worker now."""
        with self._lock:
            poked = self._poked.get(worker)
            if poked is None:
                return
            self._due.add(worker)
        with suppress(RuntimeError):  # the loop is closed: the cluster is gone
            self._loop.call_soon_threadsafe(poked.set)

    def poke_all(self) -> None:
        """Say something to every worker now."""
        with self._lock:
            workers = tuple(self._poked)
        for worker in workers:
            self.poke(worker)

    def wait_until_said(self, timeout_s: float) -> bool:
        """Wait until all who were poked have heard; whether that came true in time."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._due, timeout_s)

    def end(self) -> None:
        """Say nothing more."""
        with self._lock:
            self._over = True
            talks, self._talks = tuple(self._talks.values()), {}
        for talk in talks:
            talk.cancel()

    async def _talk(self, worker: str) -> None:
        poked = self._poked[worker]
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(poked.wait(), WORD_S)
            poked.clear()
            word = self._word(worker)
            if word.going or word.leave or worker in self._due:
                await self._say(worker, word)
            with self._lock:
                if not poked.is_set():
                    self._due.discard(worker)
                    self._lock.notify_all()

    async def _say(self, worker: str, word: Word) -> None:
        try:
            heard = await self._client.run(
                hear, self._desk, word, workers=[worker], on_error="ignore", asynchronous=True
            )
        except Exception:  # noqa: BLE001 - whatever Dask raises: the next word may come through
            return
        if heard.get(worker):
            self._heard(worker, word)
