"""How deep a YAML document is, and how large it becomes once its aliases are followed: known before anything is
expanded."""

from __future__ import annotations

import re
from typing import Any

import yaml

from hostwright.common.errors import InputError

MAX_VALUES = 2_000_000  #: aliases multiply; a file that expands to more than this is a mistake or an attack
MAX_DEPTH = 100  #: of mappings and lists in each other
_SUSPECT = 1000  #: levels, as far as brackets and signs tell; libyaml's composer overflows the stack at some 20,000
_BRACKETS = re.compile(r"[\[\]{}]")
_SIGNS = re.compile(rf"^[ ?:-]{{{_SUSPECT}}}", re.MULTILINE)


def check_depth(text: str, file: str, loader: Any) -> None:
    """Refuse a text that is nested so deeply that composing it would end the process."""
    depth = deepest = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest < _SUSPECT and not _SIGNS.search(text):
        return
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InputError("is nested too deeply", file)


def check_size(top: yaml.Node, file: str) -> None:
    """Refuse what its aliases (and ``<<``) would expand to more than ``MAX_VALUES``, before anything is expanded, and
    what is nested so deeply that reading it would end in Python's own limit."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    waiting: list[tuple[yaml.Node, bool]] = [(top, False)]
    while waiting:
        node, done = waiting.pop()
        inner = _inside(node)
        if done:
            open_nodes.discard(id(node))
            sizes[id(node)] = min(MAX_VALUES + 1, 1 + sum(sizes.get(id(child), 1) for child in inner))
        elif id(node) not in sizes and id(node) not in open_nodes:
            open_nodes.add(id(node))
            waiting.append((node, True))
            waiting += [(child, False) for child in inner]
        if len(open_nodes) > MAX_DEPTH:
            raise InputError("is nested too deeply", file)
    if sizes[id(top)] > MAX_VALUES:
        raise InputError(f"unfolds to more than {MAX_VALUES} values", file)


def _inside(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
