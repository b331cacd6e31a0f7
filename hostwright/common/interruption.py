"""The message for an operator who presses Ctrl-C: it says what was done until then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_interrupt(message: str) -> Iterator[None]:
    """Note the message on a ``KeyboardInterrupt`` that leaves the block, unless an inner block has noted its own."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not message_of(interrupt):
            interrupt.add_note(message)
        raise


def message_of(interrupt: KeyboardInterrupt) -> str:
    """The message that was noted; empty where none was."""
    return next(iter(getattr(interrupt, "__notes__", ())), "")
