"""Make untrusted text safe for an HTML page: printable, limited in length, unable to leave its element."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TypeVar

from hostwright.common.text import printable
from hostwright.inventory.patterns import fold

T = TypeVar("T")

TEXT_CHARACTERS = 1000  #: maximum number of characters of a value in the details of a host
LINE_CHARACTERS = 90  #: maximum number of characters of a line in the matrix
MARKS = 3  #: maximum number of combining marks on a letter. Vietnamese letters have up to two marks.
#: maximum number of characters of the name of a host or group. DNS allows 63 characters per label.
NAME_CHARACTERS = 120

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,120}")
#: escapes for characters that can end a script element, or begin a comment or an entity
_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@lru_cache(maxsize=20_000)
def clean(text: str, most: int = TEXT_CHARACTERS) -> str:
    """Return ``text`` without control characters. A text longer than ``most`` is truncated with a remark."""
    if len(text) <= most:
        return _printable(text)
    return f"{_printable(text[:most])} … cut ({len(text):,} characters)"


def _printable(text: str) -> str:
    """Return ``text`` without unprintable characters and stacked accents, which would cover adjacent lines."""
    if text.isascii():
        return printable(text)
    kept, marks = [], 0
    for character in printable(text):
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        kept.append(character if marks <= MARKS else "\N{REPLACEMENT CHARACTER}" if marks == MARKS + 1 else "")
    return "".join(kept)


def line(text: str, most: int = LINE_CHARACTERS) -> str:
    """Return ``text`` on one line, truncated with an ellipsis if it is longer than ``most``."""
    words = " ".join(_printable(text[: 4 * most]).split())
    return words if len(words) <= most else words[: most - 1] + "…"


def name(text: str) -> str:
    """Return ``text``, the name of a host, group or value, on one line."""
    return line(text, NAME_CHARACTERS)


def embedded(value: object) -> str:
    """Return ``value`` as JSON for a script element, in ASCII and without characters that HTML interprets."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).translate(_MARKUP)


def folded(names: Sequence[str]) -> str:
    """Return host ``names`` in short form: ``gpu[01-03],login1``. Names with special characters are written in full."""
    if all(_PLAIN_NAME.fullmatch(host) for host in names):
        return fold(names)
    return ", ".join(map(name, names))


def first(items: Iterable[T], most: int) -> tuple[list[T], int]:
    """Return the first ``most`` of ``items``, and the number of further items."""
    listed = list(items)
    return listed[:most], max(0, len(listed) - most)


def moment(iso: str) -> str:
    """Return an ISO 8601 time as ``2026-11-21 10:00 UTC``; an invalid time is returned unchanged."""
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return name(iso)
    try:
        at = at.astimezone(UTC) if at.tzinfo else at
    except OverflowError:
        return name(iso)
    return f"{at:%Y-%m-%d %H:%M} UTC"


def day_of(iso: str) -> date | None:
    """Return the day of an ISO 8601 date in the history; ``None`` if it is invalid."""
    try:
        return date.fromisoformat(iso)
    except ValueError:
        return None
