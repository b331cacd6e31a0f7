"""Signals that a test sends to its own process."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heard(*numbers: int) -> Iterator[dict[int, object]]:
    """Set Python's default handlers of these signals, and check that they are set again at the end.

    Garbage collection is disabled meanwhile: it would call Hypothesis, which loses a ``KeyboardInterrupt``.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    ours: dict[int, object] = {number: signal.getsignal(number) for number in numbers}
    gc.disable()
    try:
        yield ours
        assert {number: signal.getsignal(number) for number in numbers} == ours
    finally:
        gc.enable()
        for number, handler in before.items():
            signal.signal(number, handler)
