"""Confirmation: before a verb disturbs or destroys anything, Hostwright asks the operator once at the terminal.

``--yes`` and ``HOSTWRIGHT_YES=1`` answer in advance. Without a terminal, a destructive verb is refused.
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

YES = "yes"  #: answer that confirms a question
_TRUE = ("1", "true", "yes")


class Declined(HostwrightError):
    """The operator did not confirm, so nothing was changed."""

    def __init__(self, message: str, exit_status: int = FAILED):
        super().__init__(message)
        self.exit_status = exit_status


def answered(given: bool) -> bool:
    """Return whether ``--yes`` (``given``) or ``HOSTWRIGHT_YES`` confirms every question in advance."""
    return given or os.environ.get(YES_VARIABLE, "").strip().lower() in _TRUE


def can_ask(*, as_json: bool = False) -> bool:
    """Return whether Hostwright can ask the operator: a terminal is available, and the output is not JSON
    (``as_json``).
    """
    # Python sets a stream to None if the shell has closed it (`<&-`)
    streams: tuple[TextIO | None, ...] = (sys.stdin, sys.stderr)
    return not as_json and all(stream is not None and stream.isatty() for stream in streams)


def says_yes(question: str) -> bool:
    """Print ``question`` on standard error, and return whether the operator types ``yes``.

    Raises ``Declined`` on Ctrl-C.
    """
    sys.stderr.write(f"{question} Type {YES} to go on: ")
    sys.stderr.flush()
    try:
        return sys.stdin.readline().strip().lower() == YES
    except KeyboardInterrupt as error:
        sys.stderr.write("\n")
        raise Declined("stopped at the prompt: nothing was changed", INTERRUPTED) from error


def answer_to(question: str) -> str:
    """Print ``question`` on standard error, and return the line that the operator types."""
    print(printable(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline(80)


def agree(what: str, consequences: Iterable[str], hosts: int, *, yes: bool, as_json: bool = False) -> None:
    """Ask the operator at the terminal to confirm an action with these ``consequences``, unless ``yes`` is set.

    ``what`` names the action in error messages, ``hosts`` is the number of hosts. Raises ``Declined`` if the operator
    refuses, and ``InputError`` if no terminal is available.
    """
    refuse_unasked(what, yes=yes, as_json=as_json)
    if not yes:
        ask(consequences, hosts)


def refuse_unasked(what: str, *, yes: bool, as_json: bool = False) -> None:
    """Raise ``InputError`` unless ``yes`` confirms the action ``what`` or a terminal is available for the question."""
    if not yes and not can_ask(as_json=as_json):
        raise unasked(what)


def who_is_asked(request: Request) -> Ask | None:
    """Return the function that asks for confirmation; ``None`` if ``--yes`` is set or no terminal is available."""
    return None if request.yes or not can_ask(as_json=request.json) else ask


def ask(consequences: Iterable[str], hosts: int) -> None:
    """Ask the operator to confirm ``consequences`` on ``hosts`` hosts; ask nothing if there are none.

    Raises ``Declined`` if the operator does not type ``yes``.
    """
    lines = list(consequences)
    if not lines:
        return
    err = console.make_console(stderr=True)
    for line in ("Before anything is changed, this run:", *(f"  {line}" for line in lines)):
        err.print(Group(Hanging(line, style="yellow")), soft_wrap=not err.is_terminal)
    if not says_yes(f"Go on with {count(hosts, 'host')}?"):
        raise Declined(f"the answer was not {YES}: nothing was changed")
