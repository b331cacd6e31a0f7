"""The contents of inventory files as they are read, before they are merged into an ``Inventory``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostwright.common.errors import InputError
from hostwright.common.input.unquoted import Unquoted
from hostwright.common.input.vault import Vault
from hostwright.common.input.yamlfile import Origin
from hostwright.common.secret import Secret
from hostwright.inventory.model import ALL, HOST_LEVEL, UNGROUPED, Value
from hostwright.inventory.ranges import expand

_GROUP = re.compile(r"\w[\w.-]*")
_SECRET = re.compile(r"(?:^|_)(?:password|passwd|pass|passphrase|secret|token|api_key|password_hash)$", re.IGNORECASE)

Values = Mapping[str, Value]


@dataclass(slots=True)
class GroupDraft:
    """The definitions of one group: its hosts, its children, and layers of its variables.

    ``layers`` come from the inventory's own files, and ``files`` from ``group_vars/``.
    """

    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, Origin] = field(default_factory=dict)
    layers: list[Values] = field(default_factory=list)
    files: list[Values] = field(default_factory=list)


@dataclass(slots=True)
class Draft:
    """The contents of all inventory files that were read.

    ``mentioned`` are groups that a file uses; ``defined`` are groups that a file defines. ``errors`` make whole files
    invalid; mistakes in ``of_groups`` and ``of_hosts`` affect only these groups and hosts.
    """

    groups: dict[str, GroupDraft] = field(default_factory=lambda: {ALL: GroupDraft()})
    hosts: dict[str, list[Values]] = field(default_factory=dict)
    defined: set[str] = field(default_factory=lambda: {ALL, UNGROUPED})
    mentioned: dict[str, Origin] = field(default_factory=dict)
    errors: list[InputError] = field(default_factory=list)
    of_groups: dict[str, list[InputError]] = field(default_factory=dict)
    of_hosts: dict[str, list[InputError]] = field(default_factory=dict)
    unusable: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    left_out: list[InputError] = field(default_factory=list)
    vault: Vault = field(default_factory=Vault)

    def trial(self) -> Draft:
        """Return an empty draft with the same ``vault``, for reading one more file before ``absorb`` adds
        the contents.
        """
        return Draft(vault=self.vault)

    def fail(self, origin: Origin, message: str) -> None:
        """Record a mistake at the position ``origin`` in a file."""
        self.errors.append(InputError(message, origin.exact))

    def group(self, name: str, origin: Origin) -> GroupDraft:
        """Return the group ``name``, which a file defines at ``origin``. An invalid name is recorded as a mistake."""
        if name not in self.defined and not _GROUP.fullmatch(name):
            self.fail(origin, f"{name!r} cannot be a group's name; use only letters, digits, '_', '.' and '-'")
        self.defined.add(name)
        return self.groups.setdefault(name, GroupDraft())

    def mention(self, name: str, origin: Origin) -> GroupDraft:
        """Return the group ``name``, which a file uses at ``origin``. Another entry must also define the group."""
        self.mentioned.setdefault(name, origin)
        return self.groups.setdefault(name, GroupDraft())

    def add_hosts(self, group: GroupDraft, pattern: str, values: Values, origin: Origin) -> None:
        """Add to ``group`` the hosts to which ``pattern`` expands. Each host gets the variables ``values``."""
        try:
            names, port = expand(pattern)
        except ValueError as error:
            # The invalid name stays as an unusable host, so that the mistake is reported.
            names, port = [pattern], None
            self.unusable.add(pattern)
            self.of_hosts.setdefault(pattern, []).append(InputError(str(error), origin.exact))
        if port is not None:
            values = {"ansible_port": Value(port, origin, HOST_LEVEL), **values}
        for name in names:
            group.hosts[name] = None
            layers = self.hosts.setdefault(name, [])
            if values:
                layers.append(values)

    def absorb(self, other: Draft) -> None:
        """Append the contents of the draft ``other`` to this draft."""
        for name, group in other.groups.items():
            mine = self.groups.setdefault(name, GroupDraft())
            mine.hosts |= group.hosts
            mine.children |= group.children
            mine.layers += group.layers
        for host, layers in other.hosts.items():
            self.hosts.setdefault(host, []).extend(layers)
        for name, errors in other.of_hosts.items():
            self.of_hosts.setdefault(name, []).extend(errors)
        self.unusable |= other.unusable
        self.defined |= other.defined
        self.mentioned = {**other.mentioned, **self.mentioned}
        self.errors += other.errors
        self.notes += other.notes


def named_like_a_secret(name: str) -> bool:
    """Return whether the variable ``name`` is probably a password, judging by its name."""
    return _SECRET.search(name) is not None


def concealed(name: str, value: Any, is_secret: Callable[[str], bool] = named_like_a_secret) -> Any:
    """Wrap each text or number in ``value`` in ``Secret`` if ``is_secret(name)`` is true.

    For a value inside a mapping, the names of the mappings around it count as well.
    """
    if isinstance(value, str):
        return Secret(value) if is_secret(name) else value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and is_secret(name):
        # YAML reads 0123 as 83, but the password is 0123.
        return Secret(value.text if isinstance(value, Unquoted) else str(value))
    if isinstance(value, dict):
        inside = (lambda _: True) if is_secret(name) else is_secret
        return {key: concealed(key, inner, inside) for key, inner in value.items()}
    if isinstance(value, list):
        return [concealed(name, inner, is_secret) for inner in value]
    return value


def group_level(name: str) -> str:
    """Return the level of a group's variables for messages: ``group NAME``."""
    return f"group {name}"
