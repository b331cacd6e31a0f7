"""An inventory while it is read: what the files say, in their order, and their mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.input.yamlfile import Origin
from hostwright.common.secret import Secret
from hostwright.inventory.model import ALL, HOST_LEVEL, UNGROUPED, Value
from hostwright.inventory.ranges import expand

_GROUP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_SECRET = re.compile(r"(?:^|_)(?:password|passwd|pass|passphrase|secret|token|api_key|password_hash)$", re.IGNORECASE)

Values = Mapping[str, Value]


@dataclass(slots=True)
class GroupDraft:
    """What the files say about one group: hosts of its patterns, children, and a layer of variables for each place."""

    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, Origin] = field(default_factory=dict)
    layers: list[Values] = field(default_factory=list)


@dataclass(slots=True)
class Draft:
    """What all files say so far. ``mentioned`` are groups that must be ``defined`` somewhere."""

    groups: dict[str, GroupDraft] = field(default_factory=lambda: {ALL: GroupDraft()})
    hosts: dict[str, list[Values]] = field(default_factory=dict)
    defined: set[str] = field(default_factory=lambda: {ALL, UNGROUPED})
    mentioned: dict[str, Origin] = field(default_factory=dict)
    errors: list[InputError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fail(self, origin: Origin, message: str) -> None:
        """Note a mistake."""
        self.errors.append(InputError(message, origin.exact))

    def group(self, name: str, origin: Origin) -> GroupDraft:
        """The group with that name, which a file defines here; an invalid name is noted."""
        if name not in self.defined and not _GROUP.fullmatch(name):
            self.fail(origin, f"{name!r} cannot be a group's name: letters, digits, '_', '.' and '-' only")
        self.defined.add(name)
        return self.groups.setdefault(name, GroupDraft())

    def mention(self, name: str, origin: Origin) -> GroupDraft:
        """The group with that name, which some file must define."""
        self.mentioned.setdefault(name, origin)
        return self.groups.setdefault(name, GroupDraft())

    def add_hosts(self, group: GroupDraft, pattern: str, values: Values, origin: Origin) -> None:
        """Put the hosts of a pattern into a group, each with the same variables."""
        try:
            names, port = expand(pattern)
        except ValueError as error:
            self.fail(origin, str(error))
            return
        if port is not None:
            values = {"ansible_port": Value(port, origin, HOST_LEVEL), **values}
        for name in names:
            group.hosts[name] = None
            layers = self.hosts.setdefault(name, [])
            if values:
                layers.append(values)


def concealed(name: str, value: Any) -> Any:
    """The value with every part whose name marks it as secret wrapped in ``Secret``."""
    if isinstance(value, str):
        return Secret(value) if _SECRET.search(name) else value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and _SECRET.search(name):
        return Secret(str(value))
    if isinstance(value, dict):
        return {key: concealed(key, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [concealed(name, inner) for inner in value]
    return value


def group_level(name: str) -> str:
    """The name of a group's variable level in messages."""
    return f"group {name}"
