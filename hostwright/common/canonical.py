"""One text for equal values: JSON with sorted keys and no spaces, and its hash, which is the same on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """The one JSON text of a value that JSON can hold. Raises ``TypeError`` for any other value, ``ValueError`` for a
    number that is none (NaN, infinity).

    >>> canonical({"b": [1, None], "a": "ü"})
    '{"a":"\\\\u00fc","b":[1,null]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def hash_of(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON, in lower-case hex."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()
