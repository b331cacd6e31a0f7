"""Signals that a test sends to itself."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heard(*numbers: int) -> Iterator[dict[int, object]]:
    """Python's own handlers of these signals, whatever the tests were started from; they must stand again at the end.

    No garbage is collected meanwhile: Hypothesis is called then, and a ``KeyboardInterrupt`` in its function is lost.
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
