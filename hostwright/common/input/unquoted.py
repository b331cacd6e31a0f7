"""Unquoted YAML values with ambiguous text: ``0644`` is 420, ``1.10`` is 1.1, and YAML parsers differ on more.

Such a value is parsed as YAML 1.1, as in Ansible, and keeps its text. A field that needs the exact text can then refuse
the value.
"""

from __future__ import annotations

import re
from typing import Any

#: Text that YAML 1.1 or 1.2 parses as a number or a boolean, while PyYAML returns text.
_ELSEWHERE = re.compile(r"[-+]?(0o[0-7]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)|[yYnN]")
_FIRST = "0123456789.+-yYnN"


class Unquoted:
    """A value without quotes in a file, which YAML parsers interpret differently."""

    text: str  #: as written in the file


class UnquotedInt(int, Unquoted):
    """An integer that is not written in plain decimal digits: ``0644``, ``22:22``, ``1_000``."""


class UnquotedFloat(float, Unquoted):
    """A float that is not written in its shortest form: ``1.10``, ``1.0e+3``."""


class UnquotedText(str, Unquoted):
    """Text that other parsers read as a number, a boolean or a date: ``1e3``, ``08``, ``y``, ``2026-11-23``."""


def number_as_written(value: Any, text: str) -> Any:
    """Return a number from a file, with its text if ``str`` would show the number differently.

    >>> number_as_written(420, "0644").text, type(number_as_written(4, "4"))
    ('0644', <class 'int'>)
    """
    kind = {int: UnquotedInt, float: UnquotedFloat}.get(type(value))
    return value if kind is None or str(value) == text else _with_text(kind(value), text)


def text_as_written(text: str, *, date: bool = False) -> str:
    """Return unquoted text from a file, as ``UnquotedText`` if another parser may read something else.

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
