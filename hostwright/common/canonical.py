"""Canonical JSON (sorted keys, no spaces; the same hash on every machine), and exact keys for plain data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def canonical(value: Any) -> str:
    """Return a value as canonical JSON. Raises ``TypeError`` for a value that JSON cannot represent, ``ValueError`` for
    NaN and infinity.

    >>> canonical({"b": [1, None], "a": "ü"})
    '{"a":"\\\\u00fc","b":[1,null]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def hash_of(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, as lowercase hex."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def exact(value: Any) -> Hashable:
    """Return a dictionary key that is equal only for identical plain data.

    ``1``, ``1.0`` and ``True`` have different keys, and so do mappings in a different order. Any other object is
    compared with its own ``==``, or by identity if it is not hashable.

    >>> exact([1, {"a": "b"}]) == exact([1, {"a": "b"}])
    True
    >>> exact(1) == exact(True)
    False
    """
    if isinstance(value, (list, tuple)):
        return (type(value), *map(exact, value))
    if isinstance(value, Mapping):
        return (type(value), *((exact(key), exact(inner)) for key, inner in value.items()))
    if isinstance(value, (str, int, float)):
        return (type(value), value, getattr(value, "text", None))  # the text in the file, for an ``Unquoted`` value
    return (type(value), value if value.__hash__ else Same(value))


class Same(Generic[T]):
    """A key that is equal only for the same object, compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: T):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
