"""What stands for a value: canonical JSON (sorted keys, no spaces), which has the same hash on every machine, and a key
under which only the very same value is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def canonical(value: Any) -> str:
    """The canonical JSON text of a value. Raises ``TypeError`` for a value that JSON cannot hold, ``ValueError`` for
    NaN and infinity.

    >>> canonical({"b": [1, None], "a": "ü"})
    '{"a":"\\\\u00fc","b":[1,null]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def hash_of(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON, in lower-case hex."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def exact(value: Any) -> Hashable:
    """A key for plain data, under which no other data is found: ``1``, ``1.0`` and ``True`` are equal and have
    different keys, and so have mappings in another order.

    What is no plain data is compared as its own type does it, and is its own key where it has no hash.

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
        return (type(value), value, getattr(value, "text", None))  # as it is written in a file, where that is kept
    return (type(value), value if value.__hash__ else Same(value))


class Same(Generic[T]):
    """A key for one object: only that object has it, whatever it is equal to."""

    __slots__ = ("value",)

    def __init__(self, value: T):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
