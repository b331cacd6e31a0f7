"""YAML values without quotes that are ambiguous: ``0644`` is 420, ``1.10`` is 1.1, ``y`` may be true or text.

Such a value is parsed as YAML 1.1, as in Ansible. The value also keeps its text in the file, so that a field can reject
the value.
"""

from __future__ import annotations

import re
from typing import Any

#: pattern of text that YAML 1.1 or 1.2 defines as a number or a boolean, but PyYAML returns as text
_ELSEWHERE = re.compile(r"[-+]?(0o[0-7]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)|[yYnN]")
_FIRST = "0123456789.+-yYnN"


class Unquoted:
    """A value without quotes that YAML parsers interpret differently."""

    text: str


class UnquotedInt(int, Unquoted):
    """An integer whose text is not its plain decimal form: ``0644``, ``22:22``, ``1_000``."""


class UnquotedFloat(float, Unquoted):
    """A float whose text is not its shortest form: ``1.10``, ``1.0e+3``."""


class UnquotedText(str, Unquoted):
    """Text that some YAML parsers read as a number, a boolean or a date: ``1e3``, ``08``, ``y``, ``2026-11-23``."""


def number_as_written(value: Any, text: str) -> Any:
    """Return the number ``value``, with its ``text`` in the file if ``str(value)`` differs from that text.

    >>> number_as_written(420, "0644").text, type(number_as_written(4, "4"))
    ('0644', <class 'int'>)
    """
    kind = {int: UnquotedInt, float: UnquotedFloat}.get(type(value))
    return value if kind is None or str(value) == text else _with_text(kind(value), text)


def text_as_written(text: str, *, date: bool = False) -> str:
    """Return ``text``, a YAML value without quotes, as ``UnquotedText`` if other parsers may not read it as text.

    >>> [isinstance(text_as_written(text), UnquotedText) for text in ("1e3", "y", "Europe/Berlin", "12 o'clock")]
    [True, True, False, False]
    """
    if date or (text[:1] in _FIRST and _ELSEWHERE.fullmatch(text)):
        marked: str = _with_text(UnquotedText(text), text)
        return marked
    return text


def _with_text(value: Any, text: str) -> Any:
    value.text = text
    return value
