"""Access to files that a command can do without. If such a file cannot be read or written, the command continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hostwright.common.errors import HostwrightError

T = TypeVar("T")


class BestEffort:
    """Runs functions that may fail, and calls ``warn`` for the first failure only.

    ``what`` names the data that the functions use. ``goes_on`` is a sentence about the work that continues. Example:
    ``BestEffort(warn, "the history of audits", "The audit continues")``.
    """

    def __init__(self, warn: Callable[[str], None], what: str, goes_on: str):
        self._warn, self._what, self._goes_on = warn, what, goes_on
        self._warned = False

    def __call__(self, work: Callable[[], T]) -> T | None:
        """Return the result of ``work``, or ``None`` if ``work`` raised ``HostwrightError`` or ``OSError``."""
        try:
            return work()
        except (HostwrightError, OSError) as error:
            if not self._warned:
                self._warned = True
                self._warn(f"{self._what} cannot be used: {error}. {self._goes_on}")
            return None
