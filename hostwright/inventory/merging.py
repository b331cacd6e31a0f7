"""From the draft of all files to the inventory: the tree of groups, and each host's variables by precedence.

Weakest to strongest: groups from ``all`` outwards (ties: ``ansible_group_priority``, then the alphabet), the host, the
command line. Within one group or host, the definition read last wins: files in alphabetical order, then ``group_vars/``
and ``host_vars/``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.yamlfile import Origin, parse_document
from hostwright.inventory.connection import Connection
from hostwright.inventory.draft import Draft, GroupDraft, concealed, group_level
from hostwright.inventory.model import (
    ALL,
    COMMAND_LINE,
    HOST_LEVEL,
    UNGROUPED,
    Group,
    Host,
    Inventory,
    Value,
    VariableLayer,
)

_PRIORITY = "ansible_group_priority"


@dataclass(frozen=True, slots=True)
class _Ancestry:
    """The merged variables of a set of groups: computed once, shared by all hosts in exactly these groups."""

    groups: tuple[str, ...]
    layers: tuple[VariableLayer, ...]
    vars: Mapping[str, Value]


def merge(draft: Draft, extra: Mapping[str, str]) -> Inventory:
    """Build the inventory. Raises ``InputErrors`` with every mistake in the draft and between its files."""
    _check_mentioned(draft)
    depths = _depths(draft) if not draft.errors else {}
    if draft.errors:
        raise InputErrors(draft.errors)
    direct = _direct_groups(draft)
    tree = _Tree(draft, depths)
    strongest = _command_line(extra)
    notes = dict.fromkeys(draft.notes)
    hosts = {}
    for name, layers in draft.hosts.items():
        hosts[name] = _host(name, tree.ancestry(direct[name]), layers, strongest, notes)
    members: dict[str, list[str]] = {name: [] for name in draft.groups}
    for host in hosts.values():
        for group in host.groups:
            members[group].append(host.name)
    groups = {
        name: Group(name, tuple(members[name]), tuple(group.children), depths[name])
        for name, group in draft.groups.items()
    }
    both = sorted(set(hosts) & set(groups))
    notes |= dict.fromkeys(f"{name!r} is a host and a group; @{name} is the group" for name in both)
    return Inventory(hosts, groups, tuple(notes))


def _check_mentioned(draft: Draft) -> None:
    for name, origin in draft.mentioned.items():
        if name not in draft.defined:
            draft.fail(origin, f"there is no group {name!r}; {suggestion(name, draft.defined)}")


def _depths(draft: Draft) -> dict[str, int]:
    """The longest path from ``all`` to each group; a cycle is noted as a mistake."""
    parents: dict[str, set[str]] = {name: set() for name in draft.groups}
    for name, group in draft.groups.items():
        for child in group.children:
            parents[child].add(name)
    depths: dict[str, int] = {}
    try:
        for name in TopologicalSorter(parents).static_order():
            depths[name] = 0 if name == ALL else 1 + max((depths[parent] for parent in parents[name]), default=0)
    except CycleError as error:
        circle: list[str] = error.args[1]
        origin = draft.groups[circle[0]].children.get(circle[1]) or draft.groups[circle[1]].children[circle[0]]
        draft.fail(origin, f"groups contain each other in a circle: {' → '.join(circle)}")
    return depths


def _direct_groups(draft: Draft) -> dict[str, tuple[str, ...]]:
    """The groups that name each host directly; ``ungrouped`` for a host that only ``all`` names."""
    direct: dict[str, list[str]] = {name: [] for name in draft.hosts}
    for name, group in draft.groups.items():
        if name not in (ALL, UNGROUPED):
            for host in group.hosts:
                direct[host].append(name)
    if not all(direct.values()):
        draft.groups.setdefault(UNGROUPED, GroupDraft())
    return {host: tuple(groups) or (UNGROUPED,) for host, groups in direct.items()}


class _Tree:
    """The groups with their parents; finds the ancestry of a host from the groups that name it."""

    def __init__(self, draft: Draft, depths: dict[str, int]):
        self._draft = draft
        depths.setdefault(UNGROUPED, 1)
        self._order = {name: (depths[name], self._priority(name), name) for name in draft.groups}
        self._parents: dict[str, list[str]] = {}
        for name, group in draft.groups.items():
            for child in group.children:
                self._parents.setdefault(child, []).append(name)
        self._known: dict[tuple[str, ...], _Ancestry] = {}

    def ancestry(self, direct: tuple[str, ...]) -> _Ancestry:
        """All groups of a host that is directly in these, weakest first, and their variables."""
        if direct not in self._known:
            self._known[direct] = self._make(direct)
        return self._known[direct]

    def _make(self, direct: Iterable[str]) -> _Ancestry:
        names, waiting = {ALL}, list(direct)
        while waiting:
            name = waiting.pop()
            if name not in names:
                names.add(name)
                waiting += self._parents.get(name, [])
        groups = tuple(sorted(names, key=self._order.__getitem__))
        layers = tuple(
            VariableLayer(group_level(name), values) for name in groups for values in self._draft.groups[name].layers
        )
        return _Ancestry(groups, layers, _merged(layers))

    def _priority(self, name: str) -> int:
        given = [layer[_PRIORITY] for layer in self._draft.groups[name].layers if _PRIORITY in layer]
        try:
            return int(given[-1].value) if given else 1  # 1 is Ansible's default
        except (TypeError, ValueError) as error:
            raise InputError(f"{_PRIORITY}: expected a whole number", given[-1].origin.exact) from error


def _merged(layers: Iterable[VariableLayer]) -> dict[str, Value]:
    merged: dict[str, Value] = {}
    for layer in layers:
        merged.update(layer.values)
    return merged


def _host(
    name: str,
    ancestry: _Ancestry,
    own: Iterable[Mapping[str, Value]],
    strongest: VariableLayer | None,
    notes: dict[str, None],
) -> Host:
    layers = tuple(VariableLayer(HOST_LEVEL, values) for values in own)
    layers += (strongest,) if strongest else ()
    variables = {**ancestry.vars, **_merged(layers)}
    connection = Connection(name, variables)
    fields = connection.fields()
    notes |= dict.fromkeys(connection.notes)
    return Host(
        name,
        **fields,
        groups=ancestry.groups,
        layers=ancestry.layers + layers,
        vars=variables,
        mistakes=tuple(connection.mistakes),
    )


def _command_line(extra: Mapping[str, str]) -> VariableLayer | None:
    """The strongest layer. Values are text; a value that begins like a list or mapping is read as YAML."""
    values = {}
    for name, text in extra.items():
        data = parse_document(text, f"{COMMAND_LINE}, {name}").data if text[:1] in ("[", "{") else text
        values[name] = Value(concealed(name, data), Origin(COMMAND_LINE), COMMAND_LINE)
    return VariableLayer(COMMAND_LINE, values) if values else None
