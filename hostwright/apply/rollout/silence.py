"""Reports hosts that do not answer, long before their timeouts expire.

All events of a run pass through one ``Silence``. A host from which no event arrives after ``Waiting`` is reported as
``Silent``. During a job, a reboot or a drain, a host may stay quiet: a driver build prints nothing for minutes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from hostwright.apply.events import Emit, Event, Observed, Retrying, Silent, Waiting

#: seconds without data after which a host is reported as silent. With the poll interval, a report takes less than 10 s.
NAMED_AFTER_S = 8.0
AGAIN_AFTER_S = 30.0  #: seconds between two reports about the same silent host
TICKS = 16  #: number of checks for silent hosts within ``NAMED_AFTER_S``, two per second
CONTACT = ("a connection", "its answers")  #: values of ``Waiting.what`` during which a host must always send data
LEAVE_S = 1.0  #: seconds to wait at the end of a run for a view that is blocked


@dataclass(slots=True)
class _Wait:
    what: str
    since_s: float
    due_s: float
    named: bool = False


class Silence:
    """Passes the events of a run to ``emit``, and adds ``Silent`` for hosts that do not answer.

    Use the object as a context manager around the run: ``with Silence(view) as silence``. Thread-safe. Events after the
    end of the context are dropped.

    A repeated wait for the same thing, such as the next connection attempt, continues one silence.

    Before a host was observed, every wait counts. Afterwards, only waits for ``CONTACT`` count, because a reboot or a
    drain may take hours.
    """

    def __init__(
        self,
        emit: Emit,
        *,
        after_s: float = NAMED_AFTER_S,
        again_s: float = AGAIN_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._emit = emit
        self._after_s, self._again_s = after_s, again_s
        self._clock = clock
        self._waits: dict[str, _Wait] = {}
        self._observed: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._watch, name="silence", daemon=True)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._ticker.join(LEAVE_S)

    def __call__(self, event: Event) -> None:
        """Record the waits and progress that ``event`` shows, and pass ``event`` on to ``emit``."""
        if self._ended.is_set():
            return
        with self._lock:
            self._note(event)
        self._emit(event)

    def hosts(self) -> frozenset[str]:
        """Return the hosts that were reported as silent and from which no event has arrived since the report."""
        with self._lock:
            return frozenset(host for host, wait in self._waits.items() if wait.named)

    def name_silent(self) -> None:
        """Report each host that has been silent for ``NAMED_AFTER_S``, and again for as long as it stays silent."""
        now_s = self._clock()
        silent = []
        with self._lock:
            for host, wait in self._waits.items():
                if now_s >= wait.due_s:
                    wait.named, wait.due_s = True, now_s + self._again_s
                    silent.append(Silent(host, wait.what, now_s - wait.since_s))
        for event in silent:
            self._emit(event)

    def _note(self, event: Event) -> None:
        match event:
            case Waiting(host=host, what=what) if host not in self._observed or what in CONTACT:
                before = self._waits.get(host)
                if before is None or before.what != what:
                    now_s = self._clock()
                    self._waits[host] = _Wait(what, now_s, now_s + self._after_s)
            case Retrying() | Silent():
                pass
            case _:
                self._waits.pop(event.host, None)
        if isinstance(event, Observed):
            self._observed.add(event.host)

    def _watch(self) -> None:
        while not self._ended.wait(self._after_s / TICKS):
            self.name_silent()
