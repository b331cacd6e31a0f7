"""Clock that measures how long each phase of a rebuild takes (``rebuild.PHASES``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hostwright.common.durations import Clock
from hostwright.rebuild.rebuild import PHASES, Phase

_CLOCK = Clock()


class Phases:
    """Measures the phases of one rebuild, which starts when this object is created.

    Use it in one thread; phases cannot be nested. ``on_begin`` is called at the start of each phase with its name,
    ``on_end`` at its end with name and seconds, also after an error.
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
        """Measure the context as a part of the phase ``name``.

        Raises ``ValueError`` for an unknown name, and if another phase has not ended.
        """
        if name not in PHASES or self._open is not None:
            raise ValueError(f"the phase {name!r} cannot begin; open: {self._open or 'none of ' + ', '.join(PHASES)}")
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
        """Stop the clock of ``total_s`` until ``go_on``, while the host waits for the rebuilds of other hosts."""
        self._resting_since_s = self._clock.now_s()

    def go_on(self) -> float:
        """Restart the clock of ``total_s``; return the seconds for which it was stopped."""
        rested_s = 0.0 if self._resting_since_s is None else self._clock.now_s() - self._resting_since_s
        self._resting_since_s = None
        self._begun_s += rested_s
        return rested_s

    def move(self, source: Phase, target: Phase, seconds: float) -> None:
        """Count ``seconds`` of the ended phase ``source`` as the phase ``target``, such as a reboot during
        provisioning.

        At most the duration of ``source`` is moved, so that the sum of all phases stays the same.
        """
        moved_s = max(0.0, min(seconds, self._taken.get(source, 0.0)))
        if moved_s:
            self._taken[source] -= moved_s
            self._taken[target] = self._taken.get(target, 0.0) + moved_s

    @property
    def taken(self) -> tuple[tuple[Phase, float], ...]:
        """Ended phases with their seconds, in the order of ``PHASES``."""
        return tuple((name, self._taken[name]) for name in PHASES if name in self._taken)

    @property
    def total_s(self) -> float:
        """Seconds since the start of the rebuild, without the time for which the clock was stopped."""
        now_s = self._clock.now_s() if self._resting_since_s is None else self._resting_since_s
        return now_s - self._begun_s
