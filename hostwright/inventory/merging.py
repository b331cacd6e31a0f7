"""Merges a draft into an inventory: finds the groups of each host, and merges their variables by precedence.

The order is the same as in Ansible, from weakest to strongest: group variables in the inventory's own files,
``group_vars/all``, other files in ``group_vars/``, host variables in the inventory's own files, ``host_vars/``, the
command line. Among groups, the group farther from ``all`` wins; if the distance is equal, ``ansible_group_priority``
decides, then the alphabet. Within one group or host, the last definition wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.validation import describe
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
from hostwright.inventory.templates import World

_PRIORITY = "ansible_group_priority"
#: name of the variable that lists further secret variables
SECRETS = "hostwright_secrets"


@dataclass(frozen=True, slots=True)
class _Ancestry:
    groups: tuple[str, ...]
    layers: tuple[VariableLayer, ...]
    vars: Mapping[str, Value]


def merge(draft: Draft, extra: Mapping[str, str]) -> Inventory:
    """Build the inventory from ``draft`` and ``extra``, the variables on the command line.

    Raises ``InputErrors`` with every mistake in files, and every contradiction between files.
    """
    depths = _depths(draft) if not draft.errors else {}
    if draft.errors:
        raise InputErrors(draft.errors)
    declared = _conceal_declared(draft)
    direct = _direct_groups(draft)
    tree = _Tree(draft, depths)
    strongest = _command_line(extra, declared)
    notes = dict.fromkeys(draft.notes)
    members = _members(draft)
    merged = {name: _joined(tree.ancestry(direct[name]), layers, strongest) for name, layers in draft.hosts.items()}
    world = World({name: ancestry.vars for name, ancestry in merged.items()}, members)
    hosts = {name: _host(name, ancestry, world, draft, notes) for name, ancestry in merged.items()}
    groups = {
        name: Group(name, members[name], tuple(group.children), depths[name]) for name, group in draft.groups.items()
    }
    both = sorted(set(hosts) & set(groups))
    notes |= dict.fromkeys(f"{name!r} is a host and a group; @{name} selects the group" for name in both)
    return Inventory(hosts, groups, tuple(notes), tuple(draft.left_out))


def _conceal_declared(draft: Draft) -> Set[str]:
    """Wrap the values of all variables that any ``hostwright_secrets`` lists in ``Secret``; return the variables'
    names.
    """
    places = [place for group in draft.groups.values() for place in (group.layers, group.files)]
    places += draft.hosts.values()
    declared: set[str] = set()
    for layer in (layer for place in places for layer in place if SECRETS in layer):
        given = layer[SECRETS]
        if isinstance(given.value, list) and all(isinstance(name, str) for name in given.value):
            declared.update(given.value)
        else:
            draft.fail(given.origin, f"{SECRETS}: found {describe(given.value)}, expected a list of variable names")
    if draft.errors:
        raise InputErrors(draft.errors)
    for place in places if declared else ():
        place[:] = [{name: _concealed(name, value, declared) for name, value in layer.items()} for layer in place]
    return declared


def _concealed(name: str, value: Value, secrets: Set[str]) -> Value:
    return replace(value, value=concealed(name, value.value, secrets.__contains__))


def _members(draft: Draft) -> dict[str, tuple[str, ...]]:
    below = {child for group in draft.groups.values() for child in group.children}
    children = {name: list(group.children) for name, group in draft.groups.items()}
    tops = [name for name in draft.groups if name not in below and name not in (ALL, UNGROUPED)]
    children[ALL] = list(dict.fromkeys([UNGROUPED, *children[ALL], *tops]))
    members: dict[str, tuple[str, ...]] = {}
    for name in draft.groups:
        level, seen, hosts = [name], {name}, dict[str, None]()
        while level:
            for inner in level:
                hosts |= draft.groups[inner].hosts if inner in draft.groups else {}
            level = list(
                dict.fromkeys(child for inner in level for child in children.get(inner, ()) if child not in seen)
            )
            seen.update(level)
        members[name] = tuple(hosts)
    return members


def _depths(draft: Draft) -> dict[str, int]:
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
        draft.fail(origin, f"groups contain each other in a cycle: {' → '.join(circle)}")
    return depths


def _direct_groups(draft: Draft) -> dict[str, tuple[str, ...]]:
    direct: dict[str, list[str]] = {name: [] for name in draft.hosts}
    for name, group in draft.groups.items():
        if name not in (ALL, UNGROUPED):
            for host in group.hosts:
                direct[host].append(name)
    lone = {host: None for host, groups in direct.items() if not groups}
    if lone:
        draft.groups.setdefault(UNGROUPED, GroupDraft())
    if UNGROUPED in draft.groups:
        draft.groups[UNGROUPED].hosts = lone
    return {host: tuple(groups) or (UNGROUPED,) for host, groups in direct.items()}


class _Tree:
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
        drafts = [(name, self._draft.groups[name]) for name in groups if name in self._draft.groups]
        written = [(name, values) for name, group in drafts for values in group.layers]
        written += [(name, values) for name, group in drafts for values in group.files]
        layers = tuple(VariableLayer(group_level(name), values) for name, values in written)
        return _Ancestry(groups, layers, _merged(layers))

    def _priority(self, name: str) -> int:
        group = self._draft.groups[name]
        given = [layer[_PRIORITY] for layer in (*group.layers, *group.files) if _PRIORITY in layer]
        try:
            return int(given[-1].value) if given else 1  # The default of Ansible is 1.
        except (TypeError, ValueError) as error:
            raise InputError(f"{_PRIORITY}: expected a whole number", given[-1].origin.exact) from error


def _merged(layers: Iterable[VariableLayer]) -> dict[str, Value]:
    merged: dict[str, Value] = {}
    for layer in layers:
        merged.update(layer.values)
    return merged


def _joined(ancestry: _Ancestry, own: Iterable[Mapping[str, Value]], strongest: VariableLayer | None) -> _Ancestry:
    layers = tuple(VariableLayer(HOST_LEVEL, values) for values in own)
    layers += (strongest,) if strongest else ()
    return _Ancestry(ancestry.groups, ancestry.layers + layers, {**ancestry.vars, **_merged(layers)})


def _host(name: str, ancestry: _Ancestry, world: World, draft: Draft, notes: dict[str, None]) -> Host:
    connection = Connection(name, ancestry.vars, world, ancestry.groups)
    fields = connection.fields()
    notes |= dict.fromkeys(connection.notes)
    mistakes = [*draft.of_hosts.get(name, ())]
    mistakes += [error for group in ancestry.groups for error in draft.of_groups.get(group, ())]
    return Host(
        name,
        **fields,
        groups=ancestry.groups,
        layers=ancestry.layers,
        vars=ancestry.vars,
        mistakes=(*mistakes, *connection.mistakes),
    )


def _command_line(extra: Mapping[str, str], declared: Set[str]) -> VariableLayer | None:
    """Return the layer of the command line's variables, ``extra``. Values that begin with ``[`` or ``{`` are YAML."""
    values = {}
    for name, text in extra.items():
        data = parse_document(text, f"{COMMAND_LINE}, {name}").data if text[:1] in ("[", "{") else text
        data = concealed(name, concealed(name, data), declared.__contains__)
        values[name] = Value(data, Origin(COMMAND_LINE), COMMAND_LINE)
    return VariableLayer(COMMAND_LINE, values) if values else None
