"""The constants of modules, for the values that stand in messages."""

from __future__ import annotations

import ast
from collections.abc import Mapping

Constants = Mapping[str, str]  #: name of a constant of a module → its value as text


def constants_of(trees: Mapping[str, ast.Module]) -> dict[str, Constants]:
    """The constants of each module with a text or a whole number, its own and those that it imports."""
    own = {name: _assigned(tree) for name, tree in trees.items()}
    imported = {
        name: {
            one.asname or one.name: there[one.name]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for there in [own.get(f"{node.module}") or own.get(f"{node.module}.__init__") or {}]
            for one in node.names
            if one.name in there
        }
        for name, tree in trees.items()
    }
    return {name: imported[name] | own[name] for name in trees}


def _assigned(tree: ast.Module) -> dict[str, str]:
    known: dict[str, str] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = list(zip(names, values, strict=False))
            case (
                ast.Assign(targets=[name], value=ast.expr() as value)
                | ast.AnnAssign(target=name, value=ast.expr() as value)
            ):
                pairs = [(name, value)]
            case _:
                continue
        for name, value in pairs:
            if isinstance(name, ast.Name) and (text := _value(value, known)):
                known[name.id] = text
    return known


def _value(node: ast.expr, known: Constants) -> str:
    """The value of a constant as text; empty if it depends on more than the constants before it."""
    match node:
        case ast.Constant(value=str() | int() | float() as value):
            return f"{value:g}" if isinstance(value, float) else str(value)
        case ast.JoinedStr(values=parts):
            texts = [_value(part.value if isinstance(part, ast.FormattedValue) else part, known) for part in parts]
            return "".join(texts) if all(texts) else ""
        case ast.Name(id=name):
            return known.get(name, "")
    return ""
