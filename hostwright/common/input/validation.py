"""Converts pydantic errors to messages with file and line: the wrong value, the expected value, and a suggestion."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.unquoted import Unquoted
from hostwright.common.input.yamlfile import Origin, Where
from hostwright.common.secret import Secret

SHOWN_CHARACTERS = 60  #: maximum number of characters of a wrong value in a message

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dataclass_type": "a mapping",
    "none_required": "nothing",
}


def explain(error: ValidationError, model: type, at: Callable[[Where], Origin | None], prefix: str) -> list[InputError]:
    """Convert every part of pydantic's ``error`` for a ``model`` to an ``InputError``.

    ``at`` returns file and line of the value at a path of keys. ``prefix`` precedes this path in the messages.
    """
    return [_one(detail, model, at, prefix) for detail in error.errors(include_url=False)]


def _one(detail: ErrorDetails, model: type, at: Callable[[Where], Origin | None], prefix: str) -> InputError:
    way = _way(detail["loc"], model)
    name = ".".join(str(part) for part in (prefix, *way) if part != "")
    origin = at(way)
    return InputError(f"{name}: {_sentence(detail, model, way)}", origin.exact if origin else None)


def _sentence(detail: ErrorDetails, model: type, way: Where) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return unknown_name(str(way[-1]), names_at(model, way[:-1]))
    if kind in ("missing", "missing_argument"):
        return "is missing"
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])
    return f"found {describe(detail['input'])}, expected {_expected(detail)}"


def _expected(detail: ErrorDetails) -> str:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "string_type" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return "text; put it in quotes"
    if kind in ("literal_error", "enum"):
        return str(context["expected"])
    if kind == "string_pattern_mismatch":
        return f"text of the form {context['pattern']}"
    return _EXPECTED.get(kind) or detail["msg"].removeprefix("Input should be ")


def unknown_name(name: str, valid: Iterable[str]) -> str:
    """Return the message for the unknown ``name``, with the most similar of the ``valid`` names as a suggestion."""
    return f"{name!r} is unknown here; {suggestion(name, valid)}"


def describe(value: object) -> str:
    """Return a description of the wrong ``value`` for a message. A long value is shortened, and a secret is hidden."""
    if value is None:
        return "nothing"
    if isinstance(value, (Mapping, BaseModel)):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        text = f"number {value.text if isinstance(value, Unquoted) else value}"
    else:
        text = repr(value) if isinstance(value, (str, Secret)) else f"{type(value).__name__} {value}"
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def names_at(model: type, way: Where) -> list[str]:
    """Return the valid field names at the path of keys ``way`` inside the class ``model``."""
    here: Any = model
    for part in way:
        here = _inside(here, part)
    return list(_fields(here))


def secret_names(model: type) -> list[str]:
    """Return the names of the fields of the class ``model`` that have the type ``Secret``."""
    return list(_secrets_of(model))


@cache
def _secrets_of(model: type) -> tuple[str, ...]:
    return tuple(name for name, kind in _fields(model).items() if _unwrap(kind) is Secret)


def _way(loc: tuple[int | str, ...], model: type) -> Where:
    way: list[str | int] = []
    here: Any = model
    for part in loc:
        if part == "[key]":
            continue
        inner = _inside(here, part)
        if inner is None and _is_scalar(here):
            break
        way.append(part)
        here = inner
    return tuple(way)


def _is_scalar(annotation: Any) -> bool:
    return annotation is not None and not _fields(annotation) and typing.get_origin(_unwrap(annotation)) is None


def _inside(annotation: Any, part: str | int) -> Any:
    annotation = _unwrap(annotation)
    fields = _fields(annotation)
    if fields:
        return fields.get(str(part))
    arguments = typing.get_args(annotation)
    if not arguments:
        return None
    return arguments[-1] if isinstance(part, str) else arguments[0]


def _unwrap(annotation: Any) -> Any:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _unwrap(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        return _unwrap(members[0]) if len(members) == 1 else annotation
    return annotation


def _fields(annotation: Any) -> Mapping[str, Any]:
    annotation = _unwrap(annotation)
    return _fields_of(annotation) if isinstance(annotation, type) else {}


@cache
def _fields_of(model: type) -> Mapping[str, Any]:
    if issubclass(model, BaseModel):
        return {name: field.annotation for name, field in model.model_fields.items()}
    if dataclasses.is_dataclass(model):
        hints = typing.get_type_hints(model)
        return {field.name: hints[field.name] for field in dataclasses.fields(model) if field.init}
    return {}
