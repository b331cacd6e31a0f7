"""The executor that works on hosts from this machine: threads with the interface of ``concurrent.futures``.

``ThreadPoolExecutor`` waits for all its threads at exit, so a host that hangs would block the exit. This executor uses
daemon threads instead.
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
    """An executor with at most ``slots`` daemon threads.

    If all threads are busy, a submitted call starts another thread. A thread ends when no call waits.

    >>> with DaemonThreads(2) as threads:
    ...     [future.result() for future in [threads.submit(str.upper, "gpu01"), threads.submit(int, "7")]]
    ['GPU01', 7]
    """

    def __init__(self, slots: int, name: str = "host"):
        self._slots = max(1, slots)
        self._name = name
        self._lock = threading.Lock()  # This lock guards the fields below.
        self._waiting: deque[_Work[Any]] = deque()
        self._threads = 0
        self._closed = False
        self._empty = threading.Condition(self._lock)

    @property
    def slots(self) -> int:
        """The maximum number of threads of this executor."""
        return self._slots

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call ``fn`` in a thread. The returned future receives the return value or the exception of ``fn``."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the executor was shut down")
            self._waiting.append(_Work(future, lambda: fn(*args, **kwargs)))
            if self._threads < self._slots:
                self._threads += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no further calls.

        ``cancel_futures`` cancels the calls that have not begun. ``wait`` waits until all other calls have ended, even
        if one hangs.
        """
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
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            self._empty.notify_all()
            return None


@dataclass(frozen=True, slots=True)
class _Work(Generic[T]):
    future: Future[T]
    call: Callable[[], T]

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            value = self.call()
        except BaseException as error:  # noqa: BLE001 - passed to the future
            self.future.set_exception(error)
        else:
            self.future.set_result(value)
