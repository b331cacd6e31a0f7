"""The executor of this machine: threads that work side by side, behind the interface of ``concurrent.futures``.

``ThreadPoolExecutor`` will not do: the interpreter waits at its end for every thread of it, so that one host that hangs
for ever keeps the process from its end. These threads are daemons.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

from hostwright.apply.executors.executor import HostExecutor

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(HostExecutor):
    """At most ``slots`` threads. One is started where work has come and all others are busy, takes further work when
    its own is done, and ends where there is none: nobody keeps an idle thread for each host.

    >>> with DaemonThreads(2) as threads:
    ...     [future.result() for future in [threads.submit(str.upper, "gpu01"), threads.submit(int, "7")]]
    ['GPU01', 7]
    """

    def __init__(self, slots: int, name: str = "host"):
        self._slots = max(1, slots)
        self._name = name
        self._lock = threading.Lock()  # guards the fields below
        self._waiting: deque[_Work[Any]] = deque()
        self._threads = 0
        self._closed = False
        self._empty = threading.Condition(self._lock)

    @property
    def slots(self) -> int:
        """How much is worked on at once."""
        return self._slots

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have ``fn`` called in a thread; the future has what it returns or raises, of whatever kind that is."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("these threads take no further work")
            self._waiting.append(_Work(future, lambda: fn(*args, **kwargs)))
            if self._threads < self._slots:
                self._threads += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further work. ``wait`` for what was taken, but for what ``cancel_futures`` cancels: all that has not
        begun. Work that hangs is waited for by whoever says so, and by nobody else."""
        with self._lock:
            self._closed = True
            cancelled = tuple(self._waiting) if cancel_futures else ()
            if cancel_futures:
                self._waiting.clear()
        for work in cancelled:
            work.future.cancel()
        if wait:
            with self._empty:
                self._empty.wait_for(lambda: self._threads == 0)

    def _work(self) -> None:
        while work := self._next():
            work.run()

    def _next(self) -> _Work[Any] | None:
        """What the calling thread does next; ``None`` where it ends."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            self._empty.notify_all()
            return None


@dataclass(frozen=True, slots=True)
class _Work(Generic[T]):
    """What was submitted, and the future that has what comes of it."""

    future: Future[T]
    call: Callable[[], T]

    def run(self) -> None:
        """Do it, unless it was cancelled meanwhile. What it raises is for whoever asks the future."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            value = self.call()
        except BaseException as error:  # noqa: BLE001 - the future's, which raises it again
            self.future.set_exception(error)
        else:
            self.future.set_result(value)
