"""Checks an inventory for unknown stacks, and for variables whose names resemble a variable of a role."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.inventory import Binder, Host
from hostwright.stack.stackfile import stack_names

_NOTES = 20  #: maximum number of notes to list individually


def stack_variable(host: Host) -> str | None:
    """The name of a host's stack in its variables: ``hostwright_stack``, else ``stack``; ``None`` if both are missing.

    A ``stack`` that is not text or a number is ignored, because operators may use the variable for another purpose.
    """
    own, shared = host.get("hostwright_stack"), host.get("stack")
    named = own if own is not None else shared if isinstance(shared, (str, int, float)) else None
    return None if named is None else str(named)


def check_stack_variable(host: Host, known: Collection[str], folders: Iterable[Path]) -> None:
    """Raise ``InputError`` if a host's variable ``stack`` is not the name of a stack in ``known`` or ``folders``."""
    given, name = host.vars.get("stack"), stack_variable(host)
    if given is None or name is None or name in known or host.get("hostwright_stack") is not None:
        return
    names = stack_names(folders)
    if name not in names:
        sentence = f"stack: unknown stack {name!r}; {suggestion(name, names)}"
        raise InputError(f"{sentence} (if `stack` has another purpose here, set hostwright_stack)", given.origin.exact)


def strangers_noted(hosts: Iterable[Host], binder: Binder) -> tuple[str, ...]:
    """Return a sentence for each variable with a name that resembles a role's variable.

    A variable in a file for several hosts gets one sentence.
    """
    found = tuple(dict.fromkeys(str(error) for host in hosts for error in binder.strangers(host)))
    more = len(found) - _NOTES
    return (*found[:_NOTES], f"{more} further variables look like a role's and are ignored") if more > 0 else found
