"""Calls a function when this process receives Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptions(note: Callable[[], None]) -> Iterator[None]:
    """Call ``note`` for each Ctrl-C and SIGTERM until the end of the block, instead of the default action.

    Only the main thread handles signals. A signal that this process ignores, as in a background job of a shell, stays
    ignored.
    """
    with hearing((number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)), note):
        yield


@contextmanager
def hearing(numbers: Iterable[int], told: Callable[[], None]) -> Iterator[None]:
    """Call ``told`` for each received signal in ``numbers`` until the end of the block.

    Has no effect outside the main thread.
    """

    def handler(_number: int, _frame: FrameType | None) -> None:
        told()

    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in numbers} if main else {}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
