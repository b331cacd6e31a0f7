"""Variables that look like a role's and are not: somebody else's, or misspelt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import nearest, suggestion
from hostwright.common.input.validation import names_at
from hostwright.inventory.binding import (
    COMMANDS,
    KNOWN,
    MAPPINGS,
    OURS,
    OWN_VARIABLES,
    SHARED,
    is_mapping_of,
    names_of,
    own_names,
)
from hostwright.inventory.model import COMMAND_LINE, Host, Value

_OURS_ALIKE = 0.7  #: how similar a name behind our prefix must be to one of them to count as a misspelling
_SHARED_ALIKE = 0.85  #: and one without it: "stak" and "artefacts" are, "slack" and "track" are not
_ALIKE = 0.9  #: how similar an unknown name must be to a role's variable to count as a misspelling


Judge = Callable[[str, Value], str | None]


def strangers(host: Host, judge: Judge) -> list[InputError]:
    """Variables that look like a role's and are not: a role's name without its mapping, ``ROLE_`` before another name,
    and names that closely resemble a variable (``cdua_version``).

    ``judge`` says of which roles: ``judge_of``, or who remembers its answers. What the user has declared as own is left
    alone.
    """
    own, mistakes = own_names(host), []
    for name, value in host.vars.items():
        if name in own or value.value is None or value.level == COMMAND_LINE:
            continue
        why = judge(name, value)
        if why:
            sentence = f"{why} (a variable of your own? add {name!r} to {OWN_VARIABLES})"
            mistakes.append(InputError(sentence, value.origin.exact))
    return mistakes


def judge_of(roles: Mapping[str, type]) -> Judge:
    """Says why a variable of a name and value is not read as one of these roles', though it looks like one.

    ``roles`` maps each role's name to the class of its variables. Of a value that is no mapping, only its type counts.
    """
    flat = frozenset(f"{role}_{name}" for role, cls in roles.items() for name in names_of(cls))
    return lambda name, value: None if name in flat else _stranger(name, value, roles, flat)


def _stranger(name: str, value: Value, roles: Mapping[str, type], flat: frozenset[str]) -> str | None:
    if meant := _misspelt(name, value):
        return f"{name!r} is not read; did you mean {meant!r}?"
    if name in roles:
        valid = names_of(roles[name])
        if not isinstance(value.value, dict):
            return f"{name}: found {_kind(value.value)}, not read: the variables of the role {name} are a mapping"
        if is_mapping_of(valid, value.value):
            return None
        return f"{name}: not read: no name in it is a variable of the role {name} ({', '.join(valid)})"
    meant = nearest(name, flat, _ALIKE) or _misspelt_role(name, value, roles)
    role = next((role for role in sorted(roles, key=len, reverse=True) if name.startswith(f"{role}_")), None)
    if role and not meant:
        valid = names_at(roles[role], ())
        return f"{name!r} is not read: it is no variable of the role {role}; {_nearest_of(name, role, valid)}"
    return f"{name!r} is not read: it is no variable of any role; did you mean {meant!r}?" if meant else None


def _misspelt(name: str, value: Value) -> str | None:
    """The variable of no role that a name is a misspelling of."""
    if not name.startswith(OURS):
        meant = nearest(name, SHARED, _SHARED_ALIKE)
        return meant if name not in SHARED and isinstance(value.value, (str, int, float)) else None
    tail = name.removeprefix(OURS)
    names = (*KNOWN, *COMMANDS)
    if tail in names or tail.startswith(tuple(f"{each}_" for each in MAPPINGS)):
        return None
    found = nearest(tail, names, _OURS_ALIKE)
    return f"{OURS}{found}" if found else None


def _nearest_of(name: str, role: str, valid: Collection[str]) -> str:
    meant = nearest(name.removeprefix(f"{role}_"), valid)
    return suggestion(f"{role}_{meant}" if meant else "", [f"{role}_{field}" for field in valid])


def _kind(value: Any) -> str:
    """What a value is, without the value: a stranger's may be secret."""
    kinds = {bool: "a value", str: "text", int: "a number", float: "a number", list: "a list"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), "a value")


def _misspelt_role(name: str, value: Value, roles: Mapping[str, type]) -> str | None:
    """The role with a similar name, if the mapping has at least one variable of that role."""
    if not isinstance(value.value, dict):
        return None
    role = nearest(name, roles)
    if role is None:
        return None
    return role if set(value.value) & set(names_at(roles[role], ())) else None
