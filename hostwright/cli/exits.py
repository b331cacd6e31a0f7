"""How a verb ends: its exit status, and its errors as the sentences that the operator reads.

0 as desired · 1 something failed · 2 bad input · 3 differs (plan, check) · 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable

from rich.text import Text

from hostwright.apply.host.outcome import FAILED, INTERRUPTED
from hostwright.cli import console
from hostwright.cli.door.unforeseen import sentence_of
from hostwright.common.errors import HostwrightError
from hostwright.common.text import printable

NOBODY_READS = 141  #: what a shell shows for a program that SIGPIPE (13) ended: 128 + 13


def run(verb: Callable[[], int]) -> int:
    """Do what a verb does; return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")  # a terminal of ASCII shows what it can, and a name ends no verb
    errors = console.make_console(stderr=True)
    try:
        status = verb()
        sys.stdout.flush()  # not at the interpreter's end, when nobody can be told any more
        return status
    except HostwrightError as error:
        errors.print(Text(printable(str(error)), style="bold red"))
        return error.exit_status
    except BrokenPipeError:
        return nobody_reads()
    except KeyboardInterrupt:
        errors.print(
            "interrupted. Jobs on the hosts keep running; `invoke provision --resume`, or the same command again, "
            "re-attaches to them."
        )
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - no operator reads a traceback
        errors.print(Text(printable(sentence_of(error)), style="bold red"))
        return FAILED


def nobody_reads() -> int:
    """The reader (such as ``head``) has closed the pipe: discard the rest, so that Python's exit does not fail on it.

    Returns the exit status for that.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return NOBODY_READS
