"""Caches pydantic's type adapters. Each adapter is created on first use, because creation takes milliseconds."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


def adapter(kind: type[T]) -> TypeAdapter[T]:
    """Return pydantic's adapter for the type ``kind``, from a cache.

    >>> adapter(tuple[int, ...]).validate_json("[1, 2]")
    (1, 2)
    """
    hashable: Any = kind  # mypy does not accept a class as hashable.
    return _adapter(hashable)


def json_schema_of(kind: type, title: str, description: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) for values of type ``kind`` as JSON, with a title and a description."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    head = {"$schema": draft, "title": title, "description": description}
    schema = adapter(kind).json_schema(mode="serialization")
    return {**head, **{key: schema[key] for key in schema if key not in head}}


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
