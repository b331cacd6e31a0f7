"""Reads a stack and the stacks that it extends into a validated ``Stack``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, create_model

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.validation import explain
from hostwright.common.input.yamlfile import Document, Origin, Where, load_document, read_text
from hostwright.stack.stack import Section, Stack, StackHead, safe_stack_name
from hostwright.stack.stackvalues import TextFile, marked

DEFAULT_FILE = "default.txt"  #: file in a folder of stacks that contains the name of the default stack
#: name of a role → model of the role's section; ``None`` for a role without a section
Kinds = Mapping[str, type[Section] | None]


def load_stack(name: str, search_dirs: Sequence[Path], kinds: Kinds) -> Stack:
    """Read the stack ``name``, and the stacks that it extends, from the first of ``search_dirs`` with ``NAME.yml``.

    ``kinds`` are the models of the sections of all known roles. Raises ``InputError`` if the stack has no file, and
    ``InputErrors`` with all errors in its files, each with file, line and column.
    """
    document = _extended(name, search_dirs, ())
    data = {**document.data, "name": name}
    model = stack_model(kinds, _named_roles(data))
    mistakes = [*_read_texts(data, model, document), *_wrong_roles(data, kinds, document)]
    try:
        stack = _stack(model.model_validate(data), kinds)
    except ValidationError as error:
        raise InputErrors([*mistakes, *explain(error, model, document.at, "")]) from error
    mistakes += [*_unknown_artifacts(stack, document), *_unlike_repositories(stack, document)]
    if mistakes:
        raise InputErrors(mistakes)
    return stack


def read_stack(data: Mapping[str, Any], kinds: Kinds) -> Stack:
    """Return the stack in the plain data ``data``. Raises pydantic's ``ValidationError`` if it is invalid."""
    return _stack(stack_model(kinds).model_validate(data), kinds)


def stack_model(kinds: Kinds, wanted: Collection[str] = ()) -> type[StackHead]:
    """Return the pydantic model of a stack file.

    The sections of the roles ``wanted`` are required if they have required fields.
    """
    fields: dict[str, Any] = {}
    for name, kind in kinds.items():
        if kind is not None and any(field.is_required() for field in kind.model_fields.values()):
            fields[name] = (kind, ...) if name in wanted else (kind | None, None)
        elif kind is not None:
            fields[name] = (kind, Field(default_factory=kind))
    return create_model("StackFile", __base__=StackHead, **fields)


def _stack(model: StackHead, kinds: Kinds) -> Stack:
    head = {name: getattr(model, name) for name in StackHead.model_fields}
    order = [name for name in model.roles if name in kinds]
    values = {name: getattr(model, name, None) for name in dict.fromkeys((*order, *kinds))}
    sections = {name: section for name, section in values.items() if isinstance(section, Section)}
    return Stack(**head, sections=sections)


def _named_roles(data: Mapping[str, Any]) -> tuple[str, ...]:
    roles = data.get("roles")
    return tuple(name for name in roles if isinstance(name, str)) if isinstance(roles, list) else ()


def _wrong_roles(data: Mapping[str, Any], kinds: Kinds, document: Document) -> Iterator[InputError]:
    if data.get("roles") is None:
        wanted = f"roles: is missing; list the roles of its hosts in order: roles: [{', '.join(kinds)}]"
        yield InputError(wanted, _exact(document.at(("roles",)) or document.at(())))
    for index, name in enumerate(_named_roles(data)):
        if name not in kinds:
            sentence = f"roles.{index}: unknown role {name!r}; {suggestion(name, kinds)}"
            yield InputError(sentence, _exact(document.at(("roles", index))))


def default_stack(search_dirs: Sequence[Path]) -> str:
    """Return the default stack's name from the first ``default.txt`` in ``search_dirs``. Raises ``InputError`` if there
    is no such file.
    """
    files = (directory / DEFAULT_FILE for directory in search_dirs)
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        places = ", ".join(str(directory) for directory in search_dirs)
        sentence = (
            "no stack is set, and no default stack exists; set `stack` in the inventory, or write the name of a stack "
            f"to {DEFAULT_FILE} in one of {places}"
        )
        raise InputError(sentence)
    return read_text(file).strip()


def stack_names(search_dirs: Iterable[Path]) -> list[str]:
    """Return the names of all stacks in ``search_dirs``, sorted."""
    return sorted(
        {path.stem for directory in search_dirs for path in directory.glob("*.yml") if not path.stem.endswith(".lock")}
    )


def _extended(name: str, search_dirs: Sequence[Path], seen: tuple[str, ...], place: str | None = None) -> Document:
    if name in seen:
        circle = " → ".join((*seen, name))
        raise InputError(f"stacks extend each other in a loop: {circle}; remove one `extends`", place)
    path = _find(name, search_dirs, place)
    document = _mapping(path)
    base, parts = document.data.get("extends"), document.data.get("include", [])
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise InputError(
            "include: expected a list of files, such as [parts/toolkit.yml]", _exact(document.at(("include",)))
        )
    own = _without(document, "extends", "include")
    for index, part in reversed(list(enumerate(parts))):
        own = overlay(_fragment(part, (path.parent, *search_dirs), _exact(document.at(("include", index)))), own)
    if base is None:
        return own
    if not isinstance(base, str):
        raise InputError("extends: expected the name of another stack", _exact(document.at(("extends",))))
    return overlay(_extended(base, search_dirs, (*seen, name), _exact(document.at(("extends",)))), own)


def _mapping(path: Path) -> Document:
    document = load_document(path)
    if not isinstance(document.data, dict):
        raise InputError("expected a stack as a mapping ('driver: …')", str(path))
    return document


def _without(document: Document, *keys: str) -> Document:
    data = {key: value for key, value in document.data.items() if key not in keys}
    return Document(
        data, {way: origin for way, origin in document.origins.items() if way[:1] not in [(key,) for key in keys]}
    )


def _fragment(name: str, folders: Iterable[Path], place: str | None) -> Document:
    path = next((path for path in (folder / name for folder in folders) if path.is_file()), None)
    if path is None:
        raise InputError(f"include: file {name!r} does not exist; write its path relative to the stack's folder", place)
    document = _mapping(path)
    for key in ("extends", "include"):
        if key in document.data:
            raise InputError(
                f"{key}: not allowed in an included file; move it to the stack", _exact(document.at((key,)))
            )
    return document


def _find(name: str, search_dirs: Sequence[Path], place: str | None) -> Path:
    if safe_stack_name(name):
        for directory in search_dirs:
            path = directory / f"{name}.yml"
            if path.is_file():
                return path
    places = ", ".join(str(directory) for directory in search_dirs)
    raise InputError(f"unknown stack {name!r} in {places}; {suggestion(name, stack_names(search_dirs))}", place)


def overlay(base: Document, top: Document) -> Document:
    """Return ``base`` with the values of ``top``; mappings are merged key by key. Values keep their file positions."""
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


def _read_texts(data: dict[str, Any], model: type[StackHead], document: Document) -> Iterator[InputError]:
    """Replace each name of a text file by the file's content, and yield an error for each unreadable file.

    A name is relative to the file that contains it.
    """
    for way, name in marked(model, data, TextFile):
        origin = document.at(way)
        if not isinstance(name, str) or origin is None:
            continue
        try:
            _put(data, way, read_text(Path(origin.file).parent / name))
        except InputError as error:
            yield InputError(f"{_dotted(way)}: {error}", origin.exact)


def _put(data: dict[str, Any], way: Where, text: str) -> None:
    """Put ``text`` at the path ``way`` into nested mappings. The mappings on this path are copied: others may use
    them.
    """
    here: Any = data
    for part in way[:-1]:
        here[part] = here[part].copy()
        here = here[part]
    here[way[-1]] = text


def _dotted(way: Where) -> str:
    return ".".join(map(str, way))


def _unknown_artifacts(stack: Stack, document: Document) -> list[InputError]:
    return [
        InputError(
            f"{_dotted(way)}: unknown artifact {name!r}; {suggestion(name, stack.artifacts)}",
            _exact(document.at(way)),
        )
        for way, name in stack.artifact_uses()
        if name not in stack.artifacts
    ]


def _unlike_repositories(stack: Stack, document: Document) -> Iterator[InputError]:
    """Yield an error for a repository that two roles define differently, because apt rejects one address with two
    keys.
    """
    named = [(role, one) for role, section in stack.sections.items() for one in section.repositories()]
    for (first, one), (second, other) in combinations(named, 2):
        alike = one.name == other.name or (one.uri.rstrip("/"), one.suite) == (other.uri.rstrip("/"), other.suite)
        if alike and one != other:
            sentence = (
                f"{second}: its repository {other.name} ({other.uri}) conflicts with the repository {one.name} "
                f"({one.uri}) of {first}; write the same name, address and key in both"
            )
            yield InputError(sentence, _exact(document.at((second,))))


def _exact(origin: Origin | None) -> str | None:
    return origin.exact if origin else None
