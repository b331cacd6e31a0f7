"""Converts variables in an inventory to the typed variables of a role.

The variables of the role ``chrony`` can be written as a mapping (``chrony: {pool: …}``) or flat (``chrony_pool: …``).
Both forms are merged field by field over the layers of a host (groups, host, command line), so that a host may change a
single field.

An inventory may contain variables of other tools. A role therefore reads only the mapping under its name, and the flat
names of its own variables.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.adapter import adapter
from hostwright.common.input.nearest import nearest
from hostwright.common.input.passwordcommand import SUFFIX, PrintedSecret
from hostwright.common.input.validation import describe, explain, names_at, secret_names, unknown_name
from hostwright.common.input.yamlfile import Origin, Vaulted, Where
from hostwright.common.userpaths import working_directory
from hostwright.inventory.model import COMMAND_LINE, ROLE_DEFAULT, Definition, Host, Value, VariableLayer

T = TypeVar("T")

#: name of the variable that lists the user's own variables
OWN_VARIABLES = "hostwright_own_variables"
OURS = "hostwright_"
#: names of variables that belong to no role, without the prefix ``hostwright_``
KNOWN = (
    *("become_password", "bmc", "connect_timeout", "drain", "drain_on", "drain_timeout", "files_address", "files_port"),
    *("gpu_model", "gpus", "host_keys", "install", "known_hosts", "own_variables", "password", "peer_group"),
    *("peer_port", "peer_rate", "peer_uploads", "plan_key", "plan_signers", "prove_max_loss", "reboot_timeout"),
    *("reinstall", "roles", "secrets", "stack", "sudo", "undrain"),
)
#: names of variables with a command that prints a password, without the prefix ``hostwright_``
COMMANDS = tuple(f"{name}{SUFFIX}" for name in KNOWN if name.endswith("password"))
#: names of mappings whose fields can also be variables, such as ``hostwright_bmc_user``
MAPPINGS = ("bmc", "install", "reinstall")
SHARED = (
    "stack",
    "artifacts",
)  #: names of Hostwright's variables without a prefix
_SLIP = 0.8  #: minimum similarity of a mapping's key to a role's variable for attributing the mapping to the role


def bind(cls: type[T], role: str, host: Host) -> T:
    """Return the variables of ``role`` for ``host``, converted to their types and checked.

    Raises ``InputErrors`` with every mistake. Fields of ``cls`` that no layer sets keep their default. An unknown name
    is a mistake only beside a known name in the role's mapping, or on the command line.
    """
    mistakes: list[InputError] = []
    own, valid = own_names(host), names_of(cls)
    given = {n: value for layer in host.layers for n, value in _of_layer(role, layer, own, mistakes, valid)}
    mistakes += _take_commands(cls, role, host.name, given)
    mistakes += _unknown(cls, role, given)
    try:
        bound: T = adapter(cls).validate_python({name: value.value for name, value in given.items()})
    except ValidationError as error:
        mistakes += explain(error, cls, lambda way: _origin(given, way), role)
    if mistakes:
        raise InputErrors(list({str(mistake): mistake for mistake in mistakes}.values()))
    return bound


def definitions(host: Host, role: str, key: str, cls: type | None = None) -> tuple[Definition, ...]:
    """Return every definition of the variable ``role.key`` for ``host``, weakest first.

    With ``cls``, the class of the role's variables, the default comes first.
    """
    values = [_default(cls, key)] if cls else []
    valid = names_of(cls) if cls else (key,)
    for layer in host.layers:
        values += [value for name, value in _of_layer(role, layer, own_names(host), [], valid) if name == key]
    return tuple(Definition(value.value, value.origin, value.level, value is values[-1]) for value in values)


def own_variables(host: Host, roles: Mapping[str, type]) -> dict[str, Value]:
    """Return the variables of ``host`` that no role in ``roles`` reads."""
    own = own_names(host)
    flat = {f"{role}_{name}" for role, cls in roles.items() for name in names_at(cls, ())}

    def is_read(name: str, value: Value) -> bool:
        if name in roles and isinstance(value.value, dict):
            return is_mapping_of(names_at(roles[name], ()), value.value)
        return name in flat

    return {name: value for name, value in host.vars.items() if name in own or not is_read(name, value)}


def is_mapping_of(valid: Iterable[str], mapping: Mapping[str, Any]) -> bool:
    """Return whether ``mapping``, found under a role's name, belongs to the role: one of its keys is or resembles a
    ``valid`` name.
    """
    names = list(valid)
    return not mapping or any(key in names or nearest(key, names, _SLIP) for key in mapping)


def names_of(cls: type) -> list[str]:
    """Return the names of the variables in ``cls``, and ``NAME_command`` for each secret variable ``NAME``."""
    return [*names_at(cls, ()), *(f"{name}{SUFFIX}" for name in secret_names(cls))]


def _take_commands(cls: type, role: str, host_name: str, given: dict[str, Value]) -> list[InputError]:
    """In ``given``, replace each command that prints a secret by a ``PrintedSecret``. Return a mistake for each invalid
    command.
    """
    mistakes = []
    for name in secret_names(cls):
        command = given.pop(f"{name}{SUFFIX}", None)
        if command is None or command.value is None:
            continue
        secret, text = given.get(name), command.value
        if secret is not None and secret.value is not None:
            why = f"is set together with {role}.{name}; set one of them to null"
        elif not isinstance(text, str) or not text.strip() or "\0" in text:
            why = f"found {describe(text)}, expected a command for /bin/sh that prints the secret"
        else:
            printed = PrintedSecret(text, host_name, f"{role}.{name}{SUFFIX}")
            given[name] = Value(printed, command.origin, command.level)
            continue
        mistakes.append(InputError(f"{role}.{name}{SUFFIX}: {why}", command.origin.exact))
    return mistakes


def own_names(host: Host) -> frozenset[str]:
    """Return the names of variables that the user listed in ``hostwright_own_variables`` for ``host``."""
    names = host.get(OWN_VARIABLES, ())
    return frozenset(map(str, names)) if isinstance(names, (list, tuple)) else frozenset()


def _of_layer(
    role: str, layer: VariableLayer, own: frozenset[str], mistakes: list[InputError], valid: Collection[str]
) -> Iterator[tuple[str, Value]]:
    prefix = f"{role}_"
    ours = role.startswith(OURS)
    seen: dict[str, Value] = {}
    for name, value in layer.values.items():
        if name in own or (name != role and not name.startswith(prefix)):
            continue
        if name != role:
            field = name.removeprefix(prefix)
            parts = {field: value} if ours or field in valid or value.level == COMMAND_LINE else {}
        elif isinstance(value.value, dict):
            parts = {key: _part(value, key) for key in value.value} if ours or is_mapping_of(valid, value.value) else {}
        elif value.value is None:
            parts = {}
        elif ours or value.level == COMMAND_LINE:
            mistakes.append(_not_a_mapping(role, value))
            continue
        else:
            parts = {}
        for key, part in parts.items():
            if key in seen:
                where = part.origin.exact
                mistakes.append(
                    InputError(
                        f"{role}.{key} is given twice: first at {seen[key].origin}, again here; remove one", where
                    )
                )
            seen[key] = part
            yield key, part


def _part(value: Value, key: str) -> Value:
    marks = {way[1:]: origin for way, origin in value.marks.items() if way[:1] == (key,)}
    return Value(value.value[key], value.at((key,)), value.level, marks)


def _not_a_mapping(role: str, value: Value) -> InputError:
    return InputError(
        f"{role}: found {describe(value.value)}, expected the variables of the role {role} as a mapping; if it is a "
        f"variable of your own, add its name to {OWN_VARIABLES}",
        value.origin.exact,
    )


def _unknown(cls: type, role: str, given: dict[str, Value]) -> list[InputError]:
    """Remove variables with unknown names or undecryptable values from ``given``. Return a mistake for each removed
    variable.
    """
    mistakes = []
    valid = names_at(cls, ())
    for name, value in list(given.items()):
        if name not in valid:
            message = f"{role}.{name}: {unknown_name(name, valid)}"
            if value.level != COMMAND_LINE:
                message += f" (if it is a variable of your own, add {f'{role}_{name}'!r} to {OWN_VARIABLES})"
            mistakes.append(InputError(message, value.origin.exact))
        elif isinstance(value.value, Vaulted):
            mistakes.append(InputError(f"{role}.{name}: {value.value.sentence}", value.origin.exact))
        else:
            mistakes += _unknown_inside(cls, role, value, (name,), value.value)
            continue
        del given[name]
    return mistakes


def _unknown_inside(cls: type, role: str, value: Value, way: Where, data: Any) -> list[InputError]:
    """Return a mistake for each unknown name in dataclasses inside ``value``, because pydantic ignores such names."""
    if isinstance(data, list):
        items = [_unknown_inside(cls, role, value, (*way, index), item) for index, item in enumerate(data)]
        return [mistake for item in items for mistake in item]
    if not isinstance(data, dict):
        return []
    valid = names_at(cls, way)
    mistakes = []
    for name, inner in data.items():
        if valid and name not in valid:
            path = ".".join(map(str, (role, *way, name)))
            mistakes.append(InputError(f"{path}: {unknown_name(name, valid)}", value.at((*way[1:], name)).exact))
        else:
            mistakes += _unknown_inside(cls, role, value, (*way, name), inner)
    return mistakes


def _origin(given: Mapping[str, Value], way: Where) -> Origin | None:
    value = given.get(str(way[0])) if way else None
    return value.at(way[1:]) if value else None


def _default(cls: type, key: str) -> Value:
    field = next((field for field in dataclasses.fields(cls) if field.name == key), None)
    if field is None:
        raise InputError(f"{unknown_name(key, names_at(cls, ()))}", cls.__name__)
    value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    lines, first = inspect.getsourcelines(cls)
    line = next((first + index for index, line in enumerate(lines) if line.strip().startswith(f"{key}:")), first)
    file = Path(inspect.getsourcefile(cls) or cls.__module__)
    here = working_directory()
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    return Value(None if value is dataclasses.MISSING else value, Origin(str(shown), line), ROLE_DEFAULT)
