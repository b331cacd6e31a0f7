"""The message after Ctrl-C, which reports the work that was done before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_interrupt(message: str) -> Iterator[None]:
    """Attach ``message`` to a ``KeyboardInterrupt`` that the block raises, unless an inner block has attached one."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not message_of(interrupt):
            interrupt.add_note(message)
        raise


def message_of(interrupt: KeyboardInterrupt) -> str:
    """Return the message that ``on_interrupt`` attached to ``interrupt``, or an empty text."""
    return next(iter(getattr(interrupt, "__notes__", ())), "")
