"""End of a verb: its exit status, and its errors as messages for the operator.

0: all hosts are as desired. 1: something failed. 2: bad input. 3: hosts differ (``plan``, ``--check``). 130:
interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.text import Text

from hostwright.apply.executors.signals import hearing
from hostwright.apply.rollout.rollout import NOTHING_CHANGED, Interrupted
from hostwright.cli import console
from hostwright.cli.shell import streams
from hostwright.cli.shell.libraries import lacking
from hostwright.cli.shell.unforeseen import sentence_of
from hostwright.cli.views.shared import show_errors
from hostwright.common.errors import BAD_INPUT, FAILED, INTERRUPTED, NOBODY_READS, HostwrightError
from hostwright.common.garbage import collect_seldom
from hostwright.common.interruption import message_of, on_interrupt
from hostwright.common.text import printable

T = TypeVar("T")
PRINTING = "stopped while the results were printed"


def run(verb: Callable[[], int]) -> int:
    """Run ``verb``, print the error if ``verb`` raises one, and return the exit status."""
    # `invoke` does not prepare the streams before this call; a second preparation is harmless
    streams.prepare()
    collect_seldom()
    errors = console.make_console(stderr=True)
    try:
        with _terminable():
            status = verb()
        sys.stdout.flush()  # Python could not report a write error during the interpreter's exit
        return status
    except HostwrightError as error:
        errors.print(Text(printable(str(error)), style="bold red"))
        return error.exit_status
    except BrokenPipeError:
        return nobody_reads()
    except KeyboardInterrupt as stop:
        with _heard_no_more():
            if isinstance(stop, Interrupted) and stop.ended is not None:
                show_errors(stop.results.errors)
            if errors.is_terminal:
                errors.print()  # the message needs a new line, because the cursor may be behind `^C` or a question
            errors.print(Text(message_of(stop) or NOTHING_CHANGED))
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - no operator reads a traceback
        errors.print(Text(printable(sentence_of(error)), style="bold red"))
        return BAD_INPUT if lacking(error) else FAILED


def nobody_reads() -> int:
    """Discard all further output, because the reader (such as ``head``) has closed the pipe; return the exit status.

    Otherwise Python's flush at exit would fail.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return NOBODY_READS


def shown(work: Callable[[], T], show: Callable[[T], None]) -> T:
    """Return the result of ``work`` on hosts, after printing it with ``show``.

    After Ctrl-C, print the partial result, and raise ``Interrupted``.
    """
    try:
        ended = work()
    except Interrupted as stop:
        if stop.ended is not None:
            ended, stop.ended = stop.ended, None
            with _heard_no_more(presses=1):
                show(ended)
        raise
    with on_interrupt(PRINTING):
        show(ended)
    return ended


@contextmanager
def _terminable() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C while a verb runs, so that the terminal is restored. An existing handler is kept."""

    def on_signal() -> None:
        raise KeyboardInterrupt

    with hearing([signal.SIGTERM] if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL else [], on_signal):
        yield


@contextmanager
def _heard_no_more(presses: int = 100) -> Iterator[None]:
    """Ignore Ctrl-C while the results of an interrupted verb are printed. After ``presses`` presses, Ctrl-C works
    again, because the output may never end.
    """
    heard = 0

    def on_signal() -> None:
        nonlocal heard
        heard += 1
        if heard > presses:
            raise KeyboardInterrupt

    with hearing([signal.SIGINT], on_signal):
        yield
