"""Waiting for conditions without a notification: a port that opens, a host that goes down, an empty control group."""

from __future__ import annotations

import time
from collections.abc import Callable

from hostwright.common.errors import LabError


def await_that(
    condition: Callable[[], bool], patience_s: float, complaint: Callable[[], str], *, look_s: float = 0.02
) -> None:
    """Check ``condition`` every ``look_s`` seconds until it holds; an exception in it ends the wait.

    Raises `LabError` with the complaint if it does not hold within ``patience_s`` seconds.
    """
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(complaint())
        time.sleep(look_s)  # between two checks; this function exists because there is nothing to wait on
