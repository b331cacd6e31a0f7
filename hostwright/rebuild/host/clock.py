"""The clock of a rebuild: how long each phase took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hostwright.common.durations import Clock
from hostwright.rebuild.rebuild import PHASES, Phase

_CLOCK = Clock()


class Phases:
    """The times of one rebuild's phases, which begins when this is made. For one thread; phases do not nest.

    ``on_begin`` hears of each phase when it begins, ``on_end`` of its seconds when it ends, however it ends.
    """

    def __init__(
        self,
        clock: Clock = _CLOCK,
        *,
        on_begin: Callable[[Phase], None] = lambda _: None,
        on_end: Callable[[Phase, float], None] = lambda _name, _seconds: None,
    ):
        self._clock = clock
        self._on_begin = on_begin
        self._on_end = on_end
        self._begun_s = clock.now_s()
        self._resting_since_s: float | None = None
        self._open: Phase | None = None
        self._taken: dict[Phase, float] = {}

    @contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Time what is done inside as this phase; a phase that comes again adds up.

        Raises ``ValueError`` for a name that is no phase, and inside another phase.
        """
        if name not in PHASES or self._open is not None:
            raise ValueError(f"the phase {name!r} cannot begin: {self._open or 'it is none of ' + ', '.join(PHASES)}")
        self._open = name
        begun_s = self._clock.now_s()
        try:
            self._on_begin(name)
            yield
        finally:
            took_s = self._clock.now_s() - begun_s
            self._taken[name] = self._taken.get(name, 0.0) + took_s
            self._open = None
            self._on_end(name, took_s)

    def rest(self) -> None:
        """Stop the clock until ``go_on``: a host that waits for its turn behind others is not being rebuilt."""
        self._resting_since_s = self._clock.now_s()

    def go_on(self) -> float:
        """Let the clock go on; seconds that it stood still."""
        rested_s = 0.0 if self._resting_since_s is None else self._clock.now_s() - self._resting_since_s
        self._resting_since_s = None
        self._begun_s += rested_s
        return rested_s

    def move(self, source: Phase, target: Phase, seconds: float) -> None:
        """Count so many seconds of a phase that has ended as another's: a reboot within a provisioning run, say.

        No more is moved than the phase took, so that the sum stays as it is.
        """
        moved_s = max(0.0, min(seconds, self._taken.get(source, 0.0)))
        if moved_s:
            self._taken[source] -= moved_s
            self._taken[target] = self._taken.get(target, 0.0) + moved_s

    @property
    def taken(self) -> tuple[tuple[Phase, float], ...]:
        """The phases that have ended, in the order of ``PHASES``, with their seconds."""
        return tuple((name, self._taken[name]) for name in PHASES if name in self._taken)

    @property
    def total_s(self) -> float:
        """Seconds since the rebuild began, what lay between phases included, and the wait for its turn not."""
        now_s = self._clock.now_s() if self._resting_since_s is None else self._resting_since_s
        return now_s - self._begun_s
