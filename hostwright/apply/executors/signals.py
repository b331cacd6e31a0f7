"""Ctrl-C and SIGTERM as messages, for a loop that decides itself what comes of them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptions(note: Callable[[], None]) -> Iterator[None]:
    """Call ``note`` for each Ctrl-C and SIGTERM, and let nothing else come of them, until the end of the block.

    Only the main thread is told of signals. One that is ignored, as in a job that a shell runs in the background, stays
    ignored.
    """

    def told(_number: int, _frame: FrameType | None) -> None:
        note()

    before = {}
    if threading.current_thread() is threading.main_thread():
        heard = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
        before = {number: signal.signal(number, told) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
