"""The message that an operator gets after Ctrl-C: what was done until then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_interrupt(message: str) -> Iterator[None]:
    """If Ctrl-C interrupts the block, attach a message to the ``KeyboardInterrupt``, unless an inner block has attached
    one."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if not message_of(interrupt):
            interrupt.add_note(message)
        raise


def message_of(interrupt: KeyboardInterrupt) -> str:
    """Return the message that ``on_interrupt`` attached; empty if there is none."""
    return next(iter(getattr(interrupt, "__notes__", ())), "")
