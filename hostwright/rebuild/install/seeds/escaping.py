"""Values into the languages of seeds, so that no value can be anything but a value."""

from __future__ import annotations

import json
import re
from typing import Any

from hostwright.common.errors import InputError

_NOT_PLAIN = re.compile(r"[^\x20-\x7e]")


def to_yaml(value: Any) -> str:
    r"""Text, numbers, booleans, lists and mappings as YAML on one line, in ASCII.

    JSON is YAML but for one thing: YAML knows no surrogate pairs. So a character beyond ASCII becomes ``\U`` with eight
    digits, which every YAML parser reads, those included that refuse some characters when they stand for themselves.

    >>> print(to_yaml({"a": 'x: "y"\n'}))
    {"a": "x: \"y\"\n"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NOT_PLAIN.sub(lambda match: f"\\U{ord(match[0]):08X}", text)


def preseed(value: str, where: str) -> str:
    """A value for a line of a preseed file, as it is. Raises ``InputError`` for one that would not stay one value.

    A line ends the value, a backslash at its end would take the next line in, and spaces around it are lost.
    """
    if not value.isprintable() or "\\" in value or value != value.strip():
        raise InputError("holds a line break, a backslash or a space at its end; no preseed file can hold that", where)
    return value
