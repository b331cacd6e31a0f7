"""What an inventory is: hosts, groups, and variables that know where they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.input.yamlfile import Origin, Where
from hostwright.common.secret import Secret

ALL, UNGROUPED = "all", "ungrouped"  #: the groups that every inventory has
HOST_LEVEL, COMMAND_LINE, ROLE_DEFAULT = "host", "command line", "role default"


@dataclass(frozen=True, slots=True)
class Value:
    """One definition of a variable: its value, where it was written, and the level that it was written for.

    ``level`` is ``group NAME``, ``host`` or ``command line``. ``marks`` are the origins of values inside a mapping or
    list. A value whose name marks it as a password is a ``Secret``.
    """

    value: Any
    origin: Origin
    level: str
    marks: Mapping[Where, Origin] = field(default_factory=dict)

    def at(self, where: Where) -> Origin:
        """The origin of a part of the value."""
        while where and where not in self.marks:
            where = where[:-1]
        return self.marks.get(where, self.origin) if where else self.origin


@dataclass(frozen=True, slots=True)
class VariableLayer:
    """The variables that one place sets; later layers of a host win over earlier ones."""

    level: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Definition:
    """A line of the answer to "why does this variable have this value?"."""

    value: Any
    origin: Origin
    level: str
    wins: bool

    def __str__(self) -> str:
        return f"{'→' if self.wins else ' '} {self.value!r}  {self.level}  {self.origin}"


@dataclass(frozen=True, slots=True)
class Host:
    """One host and how to reach it. ``None`` leaves a choice to ``~/.ssh/config`` and its defaults.

    ``address`` is what ssh connects to (the name, if absent); ``proxy_jump`` is in OpenSSH's form; ``host_keys`` is
    ``accept-new`` if the inventory asks for it; ``connect_timeout`` is in seconds; ``connection`` is ``ssh``, or
    ``local`` for this machine; ``sudo`` is the path of a sudo that is not where sudo usually is. ``groups`` and
    ``layers`` go from the weakest to the strongest; ``vars`` are the layers merged. ``mistakes`` are connection
    variables that cannot be used; they are reported when this host is selected.
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
        """Whether it is this machine."""
        return self.connection == "local"

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a variable, as the strongest layer sets it, unmerged."""
        value = self.vars.get(name)
        return default if value is None else value.value

    def explain_variable(self, name: str) -> tuple[Definition, ...]:
        """Every definition of a variable that belongs to no role, weakest first."""
        values = [layer.values[name] for layer in self.layers if name in layer.values]
        return tuple(Definition(value.value, value.origin, value.level, value is values[-1]) for value in values)


@dataclass(frozen=True, slots=True)
class Group:
    """A group: all its hosts (including its children's), its children, its distance from ``all``."""

    name: str
    hosts: tuple[str, ...]
    children: tuple[str, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class Inventory:
    """Hosts in the order of the files, groups, and what the operator should know about the files."""

    hosts: Mapping[str, Host]
    groups: Mapping[str, Group]
    notes: tuple[str, ...] = ()
    left_out: tuple[InputError, ...] = ()  #: a mistake for each file that could not be read
