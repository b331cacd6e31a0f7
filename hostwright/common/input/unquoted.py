"""What YAML does not give as it was written: ``0644`` is 420 and ``1.10`` is 1.1, and readers of YAML differ on more.

Such a value is read as YAML 1.1 has it, as Ansible does, and keeps the text that was written, so that a place that
wants that very text can refuse to guess.
"""

from __future__ import annotations

import re
from typing import Any

#: What YAML 1.1 or 1.2 takes for a number or a boolean, while the reader here gives a text.
_ELSEWHERE = re.compile(r"[-+]?(0o[0-7]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)|[yYnN]")
_FIRST = "0123456789.+-yYnN"


class Unquoted:
    """A value that stands in a file without quotes, and of which not every reader of YAML makes the text there."""

    text: str  #: as it stands in the file


class UnquotedInt(int, Unquoted):
    """A whole number that is written in another way than its digits: ``0644``, ``22:22``, ``1_000``."""


class UnquotedFloat(float, Unquoted):
    """A number that is written in another way than the shortest one: ``1.10``, ``1.0e+3``."""


class UnquotedText(str, Unquoted):
    """A text that others read as a number, a boolean or a date: ``1e3``, ``08``, ``y``, ``2026-11-23``."""


def number_as_written(value: Any, text: str) -> Any:
    """A number of a file, with its text where that is not what the number is shown as.

    >>> number_as_written(420, "0644").text, type(number_as_written(4, "4"))
    ('0644', <class 'int'>)
    """
    kind = {int: UnquotedInt, float: UnquotedFloat}.get(type(value))
    return value if kind is None or str(value) == text else _with_text(kind(value), text)


def text_as_written(text: str, *, date: bool = False) -> str:
    """A text of a file that stands there without quotes, marked where another reader may make something else of it.

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
