"""Hosts as their inventory has them, also those that cannot be provisioned; and variables that are somebody else's."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.inventory import Binder, Host
from hostwright.stack.stackfile import stack_names

_NOTES = 20  #: so many variables that look like a role's are named; of more, the number is


def stack_variable(host: Host) -> str | None:
    """The stack that a host's variables name: ``hostwright_stack``, else ``stack``.

    Who means something else by ``stack`` sets the other one; what is not text can only be meant otherwise.
    """
    own, shared = host.get("hostwright_stack"), host.get("stack")
    named = own if own is not None else shared if isinstance(shared, (str, int, float)) else None
    return None if named is None else str(named)


def check_stack_variable(host: Host, known: Collection[str], folders: Iterable[Path]) -> None:
    """Raise ``InputError`` where the variable ``stack`` names no stack file, which may mean that it is not ours."""
    given, name = host.vars.get("stack"), stack_variable(host)
    if given is None or name is None or name in known or host.get("hostwright_stack") is not None:
        return
    names = stack_names(folders)
    if name not in names:
        sentence = f"stack: there is no stack {name!r}; {suggestion(name, names)}"
        raise InputError(
            f"{sentence} (if `stack` means something else here, name ours with hostwright_stack)", given.origin.exact
        )


def strangers_noted(hosts: Iterable[Host], binder: Binder) -> tuple[str, ...]:
    """A note of each variable that looks like a role's and is not, once: many hosts share a file."""
    found = tuple(dict.fromkeys(str(error) for host in hosts for error in binder.strangers(host)))
    more = len(found) - _NOTES
    return (*found[:_NOTES], f"{more} further variables look like a role's and are not read") if more > 0 else found
