"""Determines the roles of a host: the roles in the inventory's list (``hostwright_roles``), else the stack's roles.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.validation import names_at
from hostwright.inventory import Host, definitions
from hostwright.plan.roles.role import Role, in_order, providers
from hostwright.stack.stack import Stack

VARIABLE = "hostwright_roles"


def host_roles(host: Host, stack: Stack, known: Sequence[Role]) -> tuple[Role, ...]:
    """Return the roles of ``host``, each after the roles that must precede it, otherwise in the order of the host's
    list.

    Raises ``InputErrors`` with all errors in the host's list of roles, each with file and line.
    """
    given = host.vars.get(VARIABLE)
    place = given.origin.exact if given else f"stack {stack.name}"
    roles, names = {role.name: role for role in known}, named_roles(host, stack)
    mistakes = list(_mistakes(names, roles, stack, place, VARIABLE if given else "roles"))
    if mistakes:
        raise InputErrors(mistakes)
    return in_order({name: roles[name] for name in names}, names)


def named_roles(host: Host, stack: Stack) -> tuple[str, ...]:
    """Return the names in a host's list of roles; without a list, the names of its stack's roles.

    Raises ``InputErrors`` if the host's ``hostwright_roles`` is not a list of names.
    """
    given = host.vars.get(VARIABLE)
    return stack.roles if given is None else _names(given.value, given.origin.exact)


def usable(roles: Iterable[Role], stack: Stack) -> tuple[Role, ...]:
    """Return those of ``roles`` that a host can have with the sections in ``stack``.

    The stack must have the section of the role and the sections of all roles that the role needs.
    """
    left = tuple(role for role in roles if role.section is None or role.name in stack.sections)
    met = tuple(role for role in left if all(providers(need, left) for need in role.needs))
    return met if len(met) == len(left) else usable(met, stack)


def enabled_is_gone(host: Host, known: Sequence[Role]) -> Iterator[InputError]:
    """Yield an error for each obsolete variable that enabled a role. ``hostwright_roles`` replaces these variables."""
    for role in known:
        written = role.name in host.vars or f"{role.name}_enabled" in host.vars
        if written and "enabled" not in names_at(role.variables, ()):
            instead = f"list the role in {VARIABLE} instead: [base, …, {role.name}]"
            for given in definitions(host, role.name, "enabled"):
                yield InputError(f"{role.name}.enabled is no longer supported; {instead}", given.origin.exact)


def _names(value: Any, place: str) -> tuple[str, ...]:
    """Parse a list of role names, or a text with names between commas. Raises ``InputErrors`` for any other value."""
    names = [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputErrors([InputError(f"{VARIABLE}: expected a list of roles, such as [base, driver]", place)])
    return tuple(dict.fromkeys(names))


def _mistakes(
    names: Sequence[str], known: Mapping[str, Role], stack: Stack, place: str, variable: str
) -> Iterator[InputError]:
    for name in names:
        role = known.get(name)
        if role is None:
            yield InputError(f"{variable}: unknown role {name!r}; {suggestion(name, known)}", place)
            continue
        for need in role.needs:
            if not providers(need, (known[other] for other in names if other in known)):
                sentence = f"{variable}: the role {name} needs the role {need}, which is not in the list; add it"
                yield InputError(sentence, place)
        if role.section is not None and name not in stack.sections:
            sentence = f"{variable}: the stack {stack.name} has no section {name!r}, which the role {name} needs"
            yield InputError(f"{sentence}; remove the role (the stack's roles are {', '.join(stack.roles)})", place)
