"""What is kept on this machine beside the work itself: where it cannot be read or written, the work goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hostwright.common.errors import HostwrightError

T = TypeVar("T")


class BestEffort:
    """Does work that may fail: of the first failure ``warn`` is told, of later ones nobody.

    ``what`` is worked on, and ``goes_on`` is the sentence that says what is done all the same:
    ``BestEffort(warn, "the history of audits", "The audit continues")``.
    """

    def __init__(self, warn: Callable[[str], None], what: str, goes_on: str):
        self._warn, self._what, self._goes_on = warn, what, goes_on
        self._warned = False

    def __call__(self, work: Callable[[], T]) -> T | None:
        """The result of ``work``; ``None`` where it raised ``HostwrightError`` or ``OSError``."""
        try:
            return work()
        except (HostwrightError, OSError) as error:
            if not self._warned:
                self._warned = True
                self._warn(f"{self._what} cannot be used: {error}. {self._goes_on}")
            return None
