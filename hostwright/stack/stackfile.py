"""Reads a stack and what it extends; the result is a validated ``Stack``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.nearest import suggestion
from hostwright.common.validation import explain
from hostwright.common.yamlfile import Document, Origin, Where, load_document, read_text
from hostwright.stack.stack import Stack, safe_stack_name


def load_stack(name: str, search_dirs: Sequence[Path] = (Path("inventory/stacks"),)) -> Stack:
    """Read the stack ``name`` from the first of ``search_dirs`` that has ``NAME.yml``, with what it extends.

    Raises ``InputError`` for a missing file and ``InputErrors`` with all mistakes, each with file, line and column.
    """
    document = _extended(name, search_dirs, ())
    data = {**document.data, "name": name}
    mistakes = _read_constraints(data, document)
    try:
        stack = Stack.model_validate(data)
    except ValidationError as error:
        raise InputErrors([*mistakes, *explain(error, Stack, document.at, "")]) from error
    mistakes += _unknown_artifacts(stack, document)
    if mistakes:
        raise InputErrors(mistakes)
    return stack


def stack_names(search_dirs: Iterable[Path]) -> list[str]:
    """The names of all stacks in the directories."""
    return sorted(
        {path.stem for directory in search_dirs for path in directory.glob("*.yml") if not path.stem.endswith(".lock")}
    )


def _extended(name: str, search_dirs: Sequence[Path], seen: tuple[str, ...]) -> Document:
    """The document of a stack merged over those that it extends. ``seen`` are the stacks that led here."""
    if name in seen:
        raise InputError(f"stacks extend each other in a circle: {' → '.join((*seen, name))}; take one `extends` away")
    path = _find(name, search_dirs)
    document = load_document(path)
    if not isinstance(document.data, dict):
        raise InputError("expected a stack as a mapping ('driver: …')", str(path))
    data = dict(document.data)
    base = data.pop("extends", None)
    own = Document(data, {way: origin for way, origin in document.origins.items() if way[:1] != ("extends",)})
    if base is None:
        return own
    if not isinstance(base, str):
        raise InputError("extends: expected the name of another stack", _exact(document.at(("extends",))))
    return overlay(_extended(base, search_dirs, (*seen, name)), own)


def _find(name: str, search_dirs: Sequence[Path]) -> Path:
    if safe_stack_name(name):
        for directory in search_dirs:
            path = directory / f"{name}.yml"
            if path.is_file():
                return path
    places = ", ".join(str(directory) for directory in search_dirs)
    raise InputError(f"there is no stack {name!r} in {places}; {suggestion(name, stack_names(search_dirs))}")


def overlay(base: Document, top: Document) -> Document:
    """Merge two documents: mappings key by key, everything else of ``top`` replaces. Origins follow the values."""
    origins = dict(base.origins)
    data = _merge(base.data, top.data, (), origins)
    origins.update(top.origins)
    return Document(data, origins)


def _merge(base: Any, top: Any, where: Where, origins: dict[Where, Origin]) -> Any:
    if isinstance(base, Mapping) and isinstance(top, Mapping):
        merged = dict(base)
        for key, value in top.items():
            merged[key] = _merge(base[key], value, (*where, key), origins) if key in base else value
        return merged
    for way in [way for way in origins if way[: len(where)] == where]:
        del origins[way]
    return top


def _read_constraints(data: dict[str, Any], document: Document) -> list[InputError]:
    """Put the texts of the constraints files where their names stand; a name is relative to the file that gives it."""
    tensorflow = data.get("tensorflow")
    named = tensorflow.get("constraints") if isinstance(tensorflow, dict) else None
    if not isinstance(tensorflow, dict) or not isinstance(named, dict):
        return []
    mistakes, texts = [], dict(named)
    for python, name in named.items():
        origin = document.at(("tensorflow", "constraints", python))
        if not isinstance(name, str) or origin is None:
            continue
        try:
            texts[python] = read_text(Path(origin.file).parent / name)
        except InputError as error:
            mistakes.append(InputError(f"tensorflow.constraints.{python}: {error}", origin.exact))
    data["tensorflow"] = {**tensorflow, "constraints": {python: text for python, text in texts.items() if text}}
    return mistakes


def _unknown_artifacts(stack: Stack, document: Document) -> list[InputError]:
    return [
        InputError(
            f"{'.'.join(way)}: there is no artifact {name!r}; {suggestion(name, stack.artifacts)}",
            _exact(document.at(way)),
        )
        for way, name in stack.artifact_uses()
        if name not in stack.artifacts
    ]


def _exact(origin: Origin | None) -> str | None:
    return origin.exact if origin else None
