"""Converts the variables of roles to typed values, only once for all hosts with equal definitions.

Two definitions are equal if layer (the group, host or command line), name, value and type are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

from hostwright.common.canonical import Same, exact
from hostwright.common.errors import InputError
from hostwright.common.input.nearest import nearest, suggestion
from hostwright.common.input.passwordcommand import SUFFIX
from hostwright.common.input.validation import names_at
from hostwright.inventory import binding
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
from hostwright.inventory.model import COMMAND_LINE, HOST_LEVEL, Host, Value, VariableLayer

_OURS_ALIKE = 0.7  #: minimum similarity for reporting a name as a misspelt variable of Hostwright
#: minimum similarity for reporting a name as a misspelt ``stack`` or ``artifacts`` ("stak", but not "slack")
_SHARED_ALIKE = 0.85
_ALIKE = 0.9  #: minimum similarity for reporting a name as a misspelt variable of a role


Judge = Callable[[str, Value], str | None]


def strangers(host: Host, judge: Judge) -> list[InputError]:
    """Return a mistake for each variable of ``host`` that no role reads, but that resembles a role's variable.

    Examples are a text under the name of a role, and a misspelling (``cdua_version``). ``judge`` is the result of
    ``judge_of``. Variables that the user lists in ``hostwright_own_variables`` are skipped.
    """
    own, mistakes = own_names(host), []
    for name, value in host.vars.items():
        if name in own or value.value is None or value.level == COMMAND_LINE:
            continue
        why = judge(name, value)
        if why:
            sentence = f"{why} (if it is a variable of your own, add {name!r} to {OWN_VARIABLES})"
            mistakes.append(InputError(sentence, value.origin.exact))
    return mistakes


def judge_of(roles: Mapping[str, type]) -> Judge:
    """Return a function that explains why no role reads a variable although it resembles a role's variable.

    ``roles`` maps the name of each role to the class of its variables.
    """
    flat = frozenset(f"{role}_{name}" for role, cls in roles.items() for name in names_of(cls))
    return lambda name, value: None if name in flat else _stranger(name, value, roles, flat)


def _stranger(name: str, value: Value, roles: Mapping[str, type], flat: frozenset[str]) -> str | None:
    if meant := _misspelt(name, value):
        return f"{name!r} is not read; did you mean {meant!r}?"
    if name in roles:
        valid = names_of(roles[name])
        if not isinstance(value.value, dict):
            return f"{name} is not read: found {_kind(value.value)}, expected a mapping of variables of the role {name}"
        if is_mapping_of(valid, value.value):
            return None
        return f"{name} is not read: no key in it is a variable of the role {name} ({', '.join(valid)})"
    meant = nearest(name, flat, _ALIKE) or _misspelt_role(name, value, roles)
    role = next((role for role in sorted(roles, key=len, reverse=True) if name.startswith(f"{role}_")), None)
    if role and not meant:
        valid = names_at(roles[role], ())
        return f"{name!r} is not read: it is not a variable of the role {role}; {_nearest_of(name, role, valid)}"
    return f"{name!r} is not read: it is not a variable of any role; did you mean {meant!r}?" if meant else None


def _misspelt(name: str, value: Value) -> str | None:
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
    kinds = {bool: "a value", str: "text", int: "a number", float: "a number", list: "a list"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), "a value")


def _misspelt_role(name: str, value: Value, roles: Mapping[str, type]) -> str | None:
    if not isinstance(value.value, dict):
        return None
    role = nearest(name, roles)
    if role is None:
        return None
    return role if set(value.value) & set(names_at(roles[role], ())) else None


MOST = 4096  #: maximum number of entries in each cache (our choice)

Written = tuple[tuple[str, Value], ...]


class Binder:
    """Converts the variables of roles for one host after another, with caches for equal definitions."""

    def __init__(self, roles: Mapping[str, type]):
        self._roles = roles
        self._judge = judge_of(roles)
        self._of_name: dict[str, tuple[str, ...]] = {}
        self._of_group: dict[Same[Any], Mapping[str, Written]] = {}
        self._bound: dict[Hashable, Any] = {}
        self._whole: dict[Hashable, Mapping[str, Any]] = {}
        self._judged: dict[Hashable, str | None] = {}

    def bind(self, names: Sequence[str], host: Host) -> Mapping[str, Any]:
        """Return role → typed variables of ``host`` for the roles ``names``.

        Raises ``InputErrors`` with every mistake in these variables.
        """
        layers = [self._written(layer) for layer in host.layers]
        own = exact(host.get(binding.OWN_VARIABLES))
        keys = {name: self._key(name, host, layers) for name in names}
        whole = (own, *keys.items())
        if whole not in self._whole:
            self._remember(self._whole, whole, {name: self._one(name, (own, keys[name]), host) for name in names})
        return self._whole[whole]

    def strangers(self, host: Host) -> list[InputError]:
        """Return the same mistakes as the function ``strangers``, with cached explanations."""
        return strangers(host, self._stranger)

    def _one(self, name: str, written: Hashable, host: Host) -> Any:
        key = (name, written)
        if key not in self._bound:
            self._remember(self._bound, key, binding.bind(self._roles[name], name, host))
        return self._bound[key]

    def _key(self, role: str, host: Host, layers: Sequence[Mapping[str, Written]]) -> Hashable:
        parts: list[Hashable] = []
        for number, layer in enumerate(layers):
            for name, value in layer.get(role, ()):
                ours = Same(value) if value.level != HOST_LEVEL else exact(value.value)
                parts += [number, name, value.level, ours]
                if name.endswith(SUFFIX) or _names_command(value.value):
                    parts.append(host.name)  # A command may print a different secret for each host.
        return tuple(parts)

    def _written(self, layer: VariableLayer) -> Mapping[str, Written]:
        if layer.level == HOST_LEVEL:
            return dict(self._by_role(layer)) if layer.values else {}
        key = Same(layer.values)
        if key not in self._of_group:
            self._of_group[key] = dict(self._by_role(layer))
        return self._of_group[key]

    def _by_role(self, layer: VariableLayer) -> Iterator[tuple[str, Written]]:
        found: dict[str, list[tuple[str, Value]]] = {}
        for name, value in layer.values.items():
            for role in self._roles_of(name):
                found.setdefault(role, []).append((name, value))
        return ((role, tuple(values)) for role, values in found.items())

    def _roles_of(self, name: str) -> tuple[str, ...]:
        known = self._of_name.get(name)
        if known is None:
            known = tuple(role for role in self._roles if name == role or name.startswith(f"{role}_"))
            self._remember(self._of_name, name, known)
        return known

    def _stranger(self, name: str, value: Value) -> str | None:
        shared = value.level != HOST_LEVEL or isinstance(value.value, dict)
        key = (name, Same(value) if shared else type(value.value))
        if key not in self._judged:
            self._remember(self._judged, key, self._judge(name, value))
        return self._judged[key]

    @staticmethod
    def _remember(known: dict[Any, Any], key: Hashable, value: Any) -> None:
        if len(known) >= MOST:
            known.clear()
        known[key] = value


def _names_command(value: Any) -> bool:
    return isinstance(value, dict) and any(str(key).endswith(SUFFIX) for key in value)
