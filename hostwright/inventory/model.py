"""Data model of an inventory: hosts, groups, and variables, each with the position of its definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.input.yamlfile import Origin, Where
from hostwright.common.secret import Secret

ALL, UNGROUPED = "all", "ungrouped"
HOST_LEVEL, COMMAND_LINE, ROLE_DEFAULT = "host", "command line", "role default"


@dataclass(frozen=True, slots=True)
class Value:
    """One definition of a variable: its value, its position in a file, and the ``level`` at which it is set.

    ``level`` is ``group NAME``, ``host`` or ``command line``. ``marks`` are the positions of the values inside a
    mapping or list. The value of a password is a ``Secret``.
    """

    value: Any
    origin: Origin
    level: str
    marks: Mapping[Where, Origin] = field(default_factory=dict)

    def at(self, where: Where) -> Origin:
        """Return the position of a part of the value. ``where`` is the path of keys and indices to this part."""
        while where and where not in self.marks:
            where = where[:-1]
        return self.marks.get(where, self.origin) if where else self.origin


@dataclass(frozen=True, slots=True)
class VariableLayer:
    """The variables that one source, such as a file, sets for a group or host.

    A host has several layers; later layers override earlier layers.
    """

    level: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Definition:
    """One of several definitions of a variable for a host. ``wins`` marks the definition that is used."""

    value: Any
    origin: Origin
    level: str
    wins: bool

    def __str__(self) -> str:
        return f"{'→' if self.wins else ' '} {self.value!r}  {self.level}  {self.origin}"


@dataclass(frozen=True, slots=True)
class Host:
    """A host, and how to connect to it. ``None`` in a field means: use ``~/.ssh/config`` or ssh's default.

    ``address`` is the address for ssh (default: the name). ``proxy_jump`` is in OpenSSH's form. ``host_keys`` is
    ``accept-new`` or ``strict``. ``connect_timeout`` is in seconds. ``connection`` is ``ssh``, or ``local`` for this
    machine. ``sudo`` is the path of a sudo outside the usual directories. ``groups`` and ``layers`` are sorted from
    the weakest to the strongest. ``vars`` is the result of merging the layers. ``mistakes`` are reported if an operator
    selects the host.
    """

    name: str
    address: str | None = None
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    password: Secret | None = None
    proxy_jump: str | None = None
    become: bool = True
    become_user: str = "root"
    become_password: Secret | None = None
    sudo: str | None = None
    known_hosts: str | None = None
    host_keys: str | None = None
    connect_timeout: float | None = None
    connection: str = "ssh"
    groups: tuple[str, ...] = ()
    layers: tuple[VariableLayer, ...] = field(default=(), repr=False)
    vars: Mapping[str, Value] = field(default_factory=dict, repr=False)
    mistakes: tuple[InputError, ...] = field(default=(), repr=False)

    @property
    def local(self) -> bool:
        """Whether the host is the machine on which Hostwright runs."""
        return self.connection == "local"

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of the variable ``name`` in the strongest layer that sets it. Mappings are not merged."""
        value = self.vars.get(name)
        return default if value is None else value.value

    def explain_variable(self, name: str) -> tuple[Definition, ...]:
        """Return every definition of the variable ``name``, weakest first. The variable must belong to no role."""
        values = [layer.values[name] for layer in self.layers if name in layer.values]
        return tuple(Definition(value.value, value.origin, value.level, value is values[-1]) for value in values)


@dataclass(frozen=True, slots=True)
class Group:
    """A group: hosts of the group and of its children, names of the children, and distance from ``all``."""

    name: str
    hosts: tuple[str, ...]
    children: tuple[str, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory: its hosts in the order of the files, its groups, and notes for the operator about the files."""

    hosts: Mapping[str, Host]
    groups: Mapping[str, Group]
    notes: tuple[str, ...] = ()
    left_out: tuple[InputError, ...] = ()  #: mistakes, one for each inventory file that could not be read
