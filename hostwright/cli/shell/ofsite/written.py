"""Parses the verbs that a site's files define, for help and completion, without running code of the site.

Only literal definitions are found: functions with ``@task`` or ``@verb``, and collections of them. Other verbs do not
appear in the help, but can be called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from invoke import Collection, Task

_DECORATORS = {"task", "verb"}
#: variable names under which a module may define a collection of tasks, in Invoke's order
_NAMESPACES = ("ns", "namespace")
_OPTIONS = {"name", "aliases", "default", "help", "positional", "optional", "iterable", "incrementable"}
_LARGEST = 1 << 20  #: maximum size in bytes of a parsed file. A larger file would slow completion down.


def verbs_in(file: Path, module: str) -> Collection:
    """Return the verbs that ``file`` defines; none if the file is unreadable. ``module`` becomes the module name of the
    verbs.
    """
    try:
        with file.open("rb") as opened:
            body = ast.parse(opened.read(_LARGEST)).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return Collection()
    known: dict[str, Task[Any] | Collection] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and (decorator := _decorator(node)):
            known[node.name] = _task(node, decorator, module)
        elif isinstance(node, ast.Assign) and (made := _collection(node.value, known)) is not None:
            known.update({each.id: made for each in node.targets if isinstance(each, ast.Name)})
    for candidate in _NAMESPACES:
        if isinstance(found := known.get(candidate), Collection):
            return found
    return Collection(*(each for each in known.values() if isinstance(each, Task)))


def _decorator(node: ast.FunctionDef) -> ast.expr | None:
    return next((each for each in node.decorator_list if _name(each) in _DECORATORS), None)


def _name(node: ast.expr) -> str:
    named = node.func if isinstance(node, ast.Call) else node
    return str(named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", ""))


def _task(node: ast.FunctionDef, decorator: ast.expr, module: str) -> Task[Any]:
    def body(*_: Any, **__: Any) -> None: ...

    body.__name__, body.__module__, body.__doc__ = node.name, module, ast.get_docstring(node)
    body.__signature__ = Signature(list(_parameters(node.args)))  # type: ignore[attr-defined]
    names = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    given = {each.arg: _literal(each.value) for each in getattr(decorator, "keywords", ()) if each.arg}
    if _name(decorator) == "verb":  # `@verb` accepts the help texts of options as keyword arguments
        given = {"name": given.pop("called", None), "default": given.pop("default", None), "help": given}
    options = {key: value for key, value in given.items() if key in _OPTIONS and value is not None}
    helps = options.get("help")
    if isinstance(helps, dict):
        options["help"] = {name: text for name, text in helps.items() if name.replace("-", "_") in names and text}
    try:
        return Task(body, **options)
    except (TypeError, ValueError):
        return Task(body)


def _parameters(arguments: ast.arguments) -> Iterator[Parameter]:
    before = (*arguments.posonlyargs, *arguments.args)
    missing = [Parameter.empty] * (len(before) - len(arguments.defaults))
    defaults = (*missing, *map(_literal, arguments.defaults))
    for each, default in zip(before, defaults, strict=True):
        yield Parameter(each.arg, Parameter.POSITIONAL_OR_KEYWORD, default=default)
    for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        default = _literal(value) if value is not None else Parameter.empty
        yield Parameter(each.arg, Parameter.KEYWORD_ONLY, default=default)


def _collection(node: ast.expr, known: dict[str, Task[Any] | Collection]) -> Collection | None:
    if not isinstance(node, ast.Call) or _name(node) != "Collection":
        return None
    made = Collection(*(name for each in node.args[:1] if isinstance(name := _literal(each), str)))
    for alias, value in [(None, each) for each in node.args] + [(each.arg, each.value) for each in node.keywords]:
        part = known.get(value.id) if isinstance(value, ast.Name) else _collection(value, known)
        if isinstance(part, Task):
            made.add_task(part, name=alias)
        elif part is not None and (alias or part.name):
            made.add_collection(part, name=alias)
    return made


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
