"""The message for an operator who presses Ctrl-C: what was done until then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_interrupt(message: str) -> Iterator[None]:
    """Add a message to a ``KeyboardInterrupt`` that leaves the block, unless an inner block has added one."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not message_of(interrupt):
            interrupt.add_note(message)
        raise


def message_of(interrupt: KeyboardInterrupt) -> str:
    """Return the message that ``on_interrupt`` added, or an empty text."""
    return next(iter(getattr(interrupt, "__notes__", ())), "")
