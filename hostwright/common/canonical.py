"""Canonical JSON (sorted keys, no blanks) for computing hashes, and dictionary keys for lists and dictionaries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def canonical(value: Any) -> str:
    """Return ``value`` as canonical JSON.

    Raises ``TypeError`` or ``ValueError`` if JSON cannot represent the value.

    >>> canonical({"b": [1, None], "a": "ü"})
    '{"a":"\\\\u00fc","b":[1,null]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def hash_of(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of ``value``, as lowercase hex."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def exact(value: Any) -> Hashable:
    """Return a hashable key for ``value``. Keys are equal only if the values, their types and orders are equal.

    Objects other than lists and dictionaries are compared with their own ``==``, or by identity if they are not
    hashable.

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
        # Two equal ``Unquoted`` values may have different texts in the file.
        return (type(value), value, getattr(value, "text", None))
    return (type(value), value if value.__hash__ else Same(value))


class Same(Generic[T]):
    """A dictionary key for one object. Two keys are equal only if they wrap the identical object."""

    __slots__ = ("value",)

    def __init__(self, value: T):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
