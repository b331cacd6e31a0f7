"""The exit statuses of verbs, which stand on their own: a verb that only reads need not import what applies plans."""

from __future__ import annotations

from collections.abc import Iterable

AS_DESIRED, FAILED, BAD_INPUT, DIFFERS, INTERRUPTED = 0, 1, 2, 3, 130


def worst(statuses: Iterable[int]) -> int:
    """The exit status of several together: 1 before 3, and 0 where all are 0.

    >>> worst([0, 3, 1]), worst([0, 3]), worst([])
    (1, 3, 0)
    """
    return min((status for status in statuses if status != AS_DESIRED), default=AS_DESIRED)
