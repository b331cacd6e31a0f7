"""Which roles a host has: those that its inventory names (``hostwright_roles``), else those of its stack. Pure."""

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
    """The roles of a host, each after those that go before it, and beyond that in the order in which they are named.

    Raises ``InputErrors`` with all that is wrong with the list, where it stands.
    """
    given = host.vars.get(VARIABLE)
    place = given.origin.exact if given else f"stack {stack.name}"
    roles, names = {role.name: role for role in known}, named_roles(host, stack)
    mistakes = list(_mistakes(names, roles, stack, place, VARIABLE if given else "roles"))
    if mistakes:
        raise InputErrors(mistakes)
    return in_order({name: roles[name] for name in names}, names)


def named_roles(host: Host, stack: Stack) -> tuple[str, ...]:
    """The names of a host's roles as they are written; the stack's where it names none.

    Raises ``InputErrors`` for what is no list of names.
    """
    given = host.vars.get(VARIABLE)
    return stack.roles if given is None else _names(given.value, given.origin.exact)


def usable(roles: Iterable[Role], stack: Stack) -> tuple[Role, ...]:
    """Those of these roles that a host with this stack can have: it has their section, and they have what they need."""
    left = tuple(role for role in roles if role.section is None or role.name in stack.sections)
    met = tuple(role for role in left if all(providers(need, left) for need in role.needs))
    return met if len(met) == len(left) else usable(met, stack)


def enabled_is_gone(host: Host, known: Sequence[Role]) -> Iterator[InputError]:
    """Variables that switched a role on or off before ``hostwright_roles`` did."""
    for role in known:
        written = role.name in host.vars or f"{role.name}_enabled" in host.vars
        if written and "enabled" not in names_at(role.variables, ()):
            instead = f"a host has the role where {VARIABLE} names it: [base, …, {role.name}]"
            for given in definitions(host, role.name, "enabled"):
                yield InputError(f"{role.name}.enabled is gone: {instead}", given.origin.exact)


def _names(value: Any, place: str) -> tuple[str, ...]:
    """A list of names; on the command line, one text with commas."""
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
            yield InputError(f"{variable}: there is no role {name!r}; {suggestion(name, known)}", place)
            continue
        for need in role.needs:
            if not providers(need, (known[other] for other in names if other in known)):
                sentence = f"{variable}: the role {name} needs the role {need}, which is not named: name it too"
                yield InputError(sentence, place)
        if role.section is not None and name not in stack.sections:
            sentence = f"{variable}: the stack {stack.name} has no section {name!r}, which the role {name} needs"
            yield InputError(f"{sentence}: leave it out; the stack names {', '.join(stack.roles)}", place)
