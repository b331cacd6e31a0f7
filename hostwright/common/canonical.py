"""Canonical JSON (sorted keys, no spaces): equal values have the same text, and the same hash on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any


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
