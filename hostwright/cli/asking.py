"""Yes or no: what disturbs or destroys is asked once at a terminal, before anything is changed.

``--yes`` and ``HOSTWRIGHT_YES=1`` answer beforehand. Where nobody can be asked, what destroys is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Group

from hostwright.apply.rollout.consent import YES_VARIABLE, Ask, unasked
from hostwright.cli import console
from hostwright.cli.console import Hanging
from hostwright.common.errors import FAILED, INTERRUPTED, HostwrightError
from hostwright.common.request import Request
from hostwright.common.text import count, printable

YES = "yes"  #: what the operator must type, whole
_TRUE = ("1", "true", "yes")


class Declined(HostwrightError):
    """The operator was asked, and did not say yes: nothing was changed."""

    def __init__(self, message: str, exit_status: int = FAILED):
        super().__init__(message)
        self.exit_status = exit_status


def answered(given: bool) -> bool:
    """Whether every question is answered with yes beforehand: by ``--yes``, or by the environment."""
    return given or os.environ.get(YES_VARIABLE, "").strip().lower() in _TRUE


def can_ask(*, as_json: bool = False) -> bool:
    """Whether somebody sits at a terminal. Who wants JSON is a program."""
    streams: tuple[TextIO | None, ...] = (sys.stdin, sys.stderr)  # None where a shell has closed it (`<&-`)
    return not as_json and all(stream is not None and stream.isatty() for stream in streams)


def says_yes(question: str) -> bool:
    """Ask on standard error; only the whole word is a yes. Raises ``Declined`` on Ctrl-C."""
    sys.stderr.write(f"{question} Type {YES} to go on: ")
    sys.stderr.flush()
    try:
        return sys.stdin.readline().strip().lower() == YES
    except KeyboardInterrupt as error:
        sys.stderr.write("\n")
        raise Declined("stopped at the question: nothing was changed", INTERRUPTED) from error


def answer_to(question: str) -> str:
    """The line that the operator types after a question."""
    print(printable(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline(80)


def agree(what: str, consequences: Iterable[str], hosts: int, *, yes: bool, as_json: bool = False) -> None:
    """Have a verb's consequences agreed to: nothing is asked after ``--yes``, a terminal is asked once, and where
    nobody can be asked the verb is refused; ``what`` says there what it does. Raises ``Declined`` and ``InputError``.
    """
    refuse_unasked(what, yes=yes, as_json=as_json)
    if not yes:
        ask(consequences, hosts)


def refuse_unasked(what: str, *, yes: bool, as_json: bool = False) -> None:
    """Raise ``InputError`` where nobody agreed to what a verb does and nobody can be asked."""
    if not yes and not can_ask(as_json=as_json):
        raise unasked(what)


def who_is_asked(request: Request) -> Ask | None:
    """Who agrees to what a run would do; ``None`` where somebody did, or nobody can be asked."""
    return None if request.yes or not can_ask(as_json=request.json) else ask


def ask(consequences: Iterable[str], hosts: int) -> None:
    """Name what is about to happen, and ask once; do nothing if nothing is. Raises ``Declined``."""
    lines = list(consequences)
    if not lines:
        return
    err = console.make_console(stderr=True)
    for line in ("Before anything is changed, this run:", *(f"  {line}" for line in lines)):
        err.print(Group(Hanging(line, style="yellow")), soft_wrap=not err.is_terminal)
    if not says_yes(f"Go on with {count(hosts, 'host')}?"):
        raise Declined(f"the answer was not {YES}: nothing was changed")
