"""How large a YAML document becomes once its aliases are followed: known before anything is expanded."""

from __future__ import annotations

import yaml

from hostwright.common.errors import InputError

MAX_VALUES = 2_000_000  #: aliases multiply; a file that expands to more than this is a mistake or an attack
MAX_DEPTH = 100  #: of mappings and lists in each other


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
