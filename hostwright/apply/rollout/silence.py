"""Hosts that do not answer are named early, long before their own timeouts end them.

All events of a run pass through one ``Silence``. A host whose last event was ``Waiting`` and that then gives no sign of
life is reported as ``Silent``. A host whose job runs may be quiet for as long as it likes: a driver build prints
nothing for minutes. So may one that reboots or drains, for it was told to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from hostwright.apply.events import Emit, Event, Observed, Retrying, Silent, Waiting

NAMED_AFTER_S = 8.0  #: with a tick, a hung host is named within 10 s
AGAIN_AFTER_S = 30.0  #: seldom enough to leave room for the others in a log
TICKS = 16  #: looks within ``NAMED_AFTER_S``: two a second
CONTACT = ("a connection", "its answers")  #: what a host owes us at any time
LEAVE_S = 1.0  #: what the end of a run waits for a view that is stuck


@dataclass(slots=True)
class _Wait:
    """A host that is waited for: what for, since when, when it is named next, and whether it has been."""

    what: str
    since_s: float
    due_s: float
    named: bool = False


class Silence:
    """Takes the events of a run in, passes them on to ``emit``, and adds ``Silent`` where a host does not answer.

    Use it as a context manager around the run: ``with Silence(view) as silence``. Callable from any thread. After its
    end nothing is passed on any more: a thread that a run left behind has nobody to talk to.

    ``Waiting`` and ``Retrying`` come from this machine and not from the host. The same wait begun again, as in one
    attempt to connect after another, is therefore one silence; a wait for something else shows that the host went on.

    Until a host was observed, every wait counts. Afterwards only those for ``CONTACT`` do: the others (a reboot, a
    drain, an idle host) are ours, may take hours, and keep the host's slot, so that a window of two never has ten hosts
    out of service.
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
        """Take an event in and pass it on."""
        if self._ended.is_set():
            return
        with self._lock:
            self._note(event)
        self._emit(event)

    def hosts(self) -> frozenset[str]:
        """The hosts that were named silent and have given no sign of life since."""
        with self._lock:
            return frozenset(host for host, wait in self._waits.items() if wait.named)

    def name_silent(self) -> None:
        """Name the hosts that have been silent for long enough by now."""
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
