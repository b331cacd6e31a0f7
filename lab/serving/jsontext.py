"""JSON as RapidJSON has it: what it says of a text that it cannot parse, and its numbers."""

from __future__ import annotations

import json
import re
from typing import Any

_SAYS = (
    ("Expecting ':'", "Missing a colon after a name of object member."),
    ("Expecting property name", "Missing a name for object member."),
    ("Unterminated string", "Missing a closing quotation mark in string."),
    ("Invalid \\", "Invalid escape character in string."),
    ("Extra data", "The document root must not be followed by other values."),
)
_PARTS = re.compile(r'"(?:\\.|[^"\\])*"|[][{}]')


class Raw(str):
    """A number in the form in which it is written."""

    __slots__ = ()


def parser_says(error: json.JSONDecodeError, text: str) -> str:
    """RapidJSON's sentence for what Python's parser found."""
    if error.msg.startswith("Expecting ','"):
        sign, what = ("}", "object member") if _inside_object(text[: error.pos]) else ("]", "array element")
        return f"Missing a comma or {sign} after an {what}."
    return next((says for begin, says in _SAYS if error.msg.startswith(begin)), "Invalid value.")


def _inside_object(text: str) -> bool:
    open_: list[str] = []
    for match in _PARTS.finditer(text):
        if match[0] in "[{":
            open_.append(match[0])
        elif match[0] in "]}" and open_:
            open_.pop()
    return open_[-1:] == ["{"]


def written(value: Any) -> bytes:
    """The document as bytes of JSON."""
    return _text(value).encode("utf-8", "surrogateescape")


def _text(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
