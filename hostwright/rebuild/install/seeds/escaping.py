"""Escaping of values in the formats of seeds, so that no value can change the structure."""

from __future__ import annotations

import json
import re
from typing import Any

from hostwright.common.errors import InputError

_NOT_PLAIN = re.compile(r"[^\x20-\x7e]")


def to_yaml(value: Any) -> str:
    r"""Text, numbers, booleans, lists and mappings as YAML on one line, in ASCII.

    JSON is valid YAML except for surrogate pairs. So a character outside ASCII becomes ``\U`` with eight digits. All
    YAML parsers read this form, even those that refuse some characters without escapes.

    >>> print(to_yaml({"a": 'x: "y"\n'}))
    {"a": "x: \"y\"\n"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NOT_PLAIN.sub(lambda match: f"\\U{ord(match[0]):08X}", text)


def preseed(value: str, where: str) -> str:
    """A value for a line of a preseed file, unchanged. Raises ``InputError`` for a value that would be misread.

    A line break ends the value, a trailing backslash joins the next line, and surrounding spaces are lost.
    """
    if not value.isprintable() or "\\" in value or value != value.strip():
        raise InputError(
            "contains a line break, a backslash or a space at its end; remove it, because a preseed file cannot "
            "contain it",
            where,
        )
    return value
