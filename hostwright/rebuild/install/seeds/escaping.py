"""Escaping of values in seeds, so that no value can change the structure of a file."""

from __future__ import annotations

import json
import re
from typing import Any

from hostwright.common.errors import InputError

_NOT_PLAIN = re.compile(r"[^\x20-\x7e]")


def to_yaml(value: Any) -> str:
    r"""Convert text, numbers, booleans, lists and mappings to YAML on one line, in ASCII.

    >>> print(to_yaml({"a": 'x: "y"\n'}))
    {"a": "x: \"y\"\n"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NOT_PLAIN.sub(lambda match: f"\\U{ord(match[0]):08X}", text)


def preseed(value: str, where: str) -> str:
    """Return ``value`` for a line of a preseed file.

    Raises ``InputError`` with the position ``where`` if the installer would misread the value, because of line breaks,
    a trailing backslash or surrounding spaces.
    """
    if not value.isprintable() or "\\" in value or value != value.strip():
        raise InputError(
            "contains a line break, a backslash or a space at its end; remove it, because a preseed file cannot "
            "contain it",
            where,
        )
    return value
