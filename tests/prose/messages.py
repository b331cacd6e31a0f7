"""docs/messages.md, all texts of errors, refusals and notes: ``python -m tests.prose.messages`` writes it."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping

from hostwright.common.text import markdown
from tests.places import PROJECT

PAGE = PROJECT / "docs" / "messages.md"
INTRO = """\
# Messages

*For developers of Hostwright.*

All texts of errors, refusals and notes, by the module that makes them. A name in braces stands for a value. Read the
page as an operator would: each text says where, what is wrong and what to do. `make lint` checks its prose. The page
[Known failures](failures/index.md) has the texts of the failure rules.

`python -m tests.prose.messages` writes this page from the code.
"""
#: what carries a text to an operator beside exceptions
CARRIERS = {"Deferred", "Misfit", "Note", "ProofFinding", "Reason", "Refusal"}
#: how the names of functions begin that pass a text on to one of these
PASS_ON = re.compile(r"_*(fail|refuse|wrong|warn|note|mistake|error)")
HOLE = re.compile(r"\{[^}]*\}")


def messages(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The texts in the code of modules (module → source), by module, each once and in the order of the code."""
    trees = {name: ast.parse(source) for name, source in sources.items()}
    kinds = CARRIERS | _exceptions(trees.values())
    found = {name: dict.fromkeys(_of_module(tree, kinds)) for name, tree in trees.items()}
    return {name: list(texts) for name, texts in sorted(found.items()) if texts}


def page() -> str:
    """The page of the texts of this checkout, as Markdown."""
    paths = (path for folder in ("hostwright", "roles") for path in (PROJECT / folder).rglob("*.py"))
    names = {".".join(path.relative_to(PROJECT).with_suffix("").parts): path for path in paths}
    found = messages({name: path.read_text("utf-8") for name, path in names.items()})
    parts, room = [INTRO], ""
    for name, texts in found.items():
        if (here := ".".join(name.split(".")[:2])) != room:
            parts.append(f"## {(room := here)}\n")
        parts += [f"**`{name}`**\n", "".join(f"- {markdown(' '.join(text.split()))}\n" for text in texts)]
    return "\n".join(parts)


def _exceptions(trees: Iterable[ast.Module]) -> set[str]:
    """The names of our exceptions and of Python's."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    names = {name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, Exception)}
    while more := {name for name, above in bases.items() if above & names} - names:
        names |= more
    return names


def _of_module(tree: ast.Module, kinds: set[str]) -> Iterator[str]:
    """The texts in the calls of these kinds, of functions that return one, and of those that pass one on."""
    makers = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.returns
        if kinds & set(re.findall(r"\w+", ast.unparse(node.returns)))
    }
    own = {
        call
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name in kinds
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__"
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        name = ast.unparse(call.func).rpartition(".")[2]
        if call in own or name in kinds | makers or PASS_ON.match(name):
            for value in [*call.args, *(word.value for word in call.keywords)]:
                yield from (
                    text
                    for text in _texts(value)
                    if " " in text and len(re.findall("[A-Za-z]{2,}", HOLE.sub("", text))) > 1
                )


def _texts(node: ast.expr) -> list[str]:
    """The texts that an expression may be; values that stand in them as names in braces."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(_texts(one)[0] if isinstance(one, ast.Constant) else _hole(one) for one in parts)]
        case ast.IfExp(body=body, orelse=other):
            return _texts(body) + _texts(other)
        case ast.BinOp(left=left, right=right):
            return _texts(left) + _texts(right)
        case ast.BoolOp(values=values):
            return [text for one in values for text in _texts(one)]
    return []


def _hole(node: ast.AST) -> str:
    """The name of a value in an f-string, in braces: the last of an attribute's, and that of a call's argument."""
    match node:
        case (
            ast.FormattedValue(value=value)
            | ast.Call(args=[value, *_])
            | ast.Call(func=value)
            | ast.Subscript(value=value)
        ):
            return _hole(value)
        case ast.Attribute(attr=str(name)) | ast.Name(id=str(name)) | ast.Constant(value=str(name)):
            return f"{{{name.strip('_')}}}"
    return "{…}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
