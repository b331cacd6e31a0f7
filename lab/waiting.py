"""Polling for conditions that send no notification."""

from __future__ import annotations

import time
from collections.abc import Callable

from hostwright.common.errors import LabError


def await_that(
    condition: Callable[[], bool], patience_s: float, complaint: Callable[[], str], *, look_s: float = 0.02
) -> None:
    """Call ``condition`` every ``look_s`` seconds until it returns true. An exception ends the wait.

    Raises `LabError` with the text of ``complaint`` after ``patience_s`` seconds.
    """
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(complaint())
        time.sleep(look_s)  # the pause between two checks of the condition
