"""Runs named tasks in parallel, each after the other tasks that it needs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from graphlib import TopologicalSorter
from queue import SimpleQueue

from hostwright.common.errors import HostwrightError


def run_in_order(
    needs: Mapping[str, Sequence[str]],
    work: Callable[[str], None],
    *,
    skipped: Callable[[str, str], None] = lambda _name, _failed: None,
) -> list[HostwrightError]:
    """Call ``work(name)`` for each name as soon as its needs are done. Return the failures in the order of time.

    ``needs`` has, for each name, the names that must be done before; needs that are not keys count as done. For a name
    whose need failed, ``skipped(name, failed)`` is called instead. After an error that is not a ``HostwrightError``, no
    more work begins; the error is raised when running work has ended. Raises ``graphlib.CycleError`` for cyclic needs.

    >>> run_in_order({"chrony": ("network",), "network": ("base",)}, print)
    network
    chrony
    []
    """
    run = _Run(needs, work, skipped)
    while run.goes_on():
        run.begin()
        run.wait()
    if run.bug is not None:
        raise run.bug
    return run.failures


class _Run:
    def __init__(
        self, needs: Mapping[str, Sequence[str]], work: Callable[[str], None], skipped: Callable[[str, str], None]
    ):
        self.failures: list[HostwrightError] = []
        self.bug: BaseException | None = None
        self._needs = {name: sorted(set(before) & set(needs)) for name, before in needs.items()}
        self._work = work
        self._skipped = skipped
        self._order = TopologicalSorter(self._needs)
        self._order.prepare()
        #: failed or skipped name → name whose failure was the cause
        self._lost: dict[str, str] = {}
        self._running = 0
        self._ended: SimpleQueue[tuple[str, BaseException | None]] = SimpleQueue()

    def goes_on(self) -> bool:
        return self._running > 0 or (self.bug is None and self._order.is_active())

    def begin(self) -> None:
        while self.bug is None and (ready := self._order.get_ready()):
            for name in ready:
                if failed := next((need for need in self._needs[name] if need in self._lost), ""):
                    self._lost[name] = self._lost[failed]
                    self._skipped(name, self._lost[name])
                    self._order.done(name)
                else:
                    self._running += 1
                    threading.Thread(target=self._do, args=(name,), name=f"role-{name}", daemon=True).start()

    def wait(self) -> None:
        """Wait until one of the running calls ends. Returns at once if no call is running."""
        if not self._running:
            return
        name, error = self._ended.get()
        self._running -= 1
        self._order.done(name)
        if isinstance(error, HostwrightError):
            self.failures.append(error)
            self._lost[name] = name
        elif error is not None:
            self.bug = self.bug or error

    def _do(self, name: str) -> None:
        try:
            self._work(name)
        except BaseException as error:  # noqa: BLE001 - handled in the caller's thread
            self._ended.put((name, error))
        else:
            self._ended.put((name, None))
