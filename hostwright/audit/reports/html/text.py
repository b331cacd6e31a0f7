"""Foreign text on its way into a page: printable, of bounded length, and unable to leave the element it is in."""

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

TEXT_CHARACTERS = 1000  #: of one value in the details: a long PATH fits, a host that answers megabytes does not
LINE_CHARACTERS = 90  #: of what stands in one line of the matrix
MARKS = 3  #: combining marks on one letter; Vietnamese needs two
NAME_CHARACTERS = 120  #: of a host's or a group's name; DNS allows 63 a label

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,120}")
#: what could end a script element, begin a comment or an entity; ``json.dumps`` has escaped all but ASCII before
_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@lru_cache(maxsize=20_000)
def clean(text: str, most: int = TEXT_CHARACTERS) -> str:
    """Text of a host without control characters; text longer than ``most`` says that it was cut."""
    if len(text) <= most:
        return _sober(text)
    return f"{_sober(text[:most])} … cut ({len(text):,} characters)"


def _sober(text: str) -> str:
    """Printable text without towers of accents, which would cover the lines around them."""
    if text.isascii():
        return printable(text)
    kept, marks = [], 0
    for character in printable(text):
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        kept.append(character if marks <= MARKS else "\N{REPLACEMENT CHARACTER}" if marks == MARKS + 1 else "")
    return "".join(kept)


def line(text: str, most: int = LINE_CHARACTERS) -> str:
    """Text of a host in one line, with an ellipsis where it is longer."""
    words = " ".join(_sober(text[: 4 * most]).split())
    return words if len(words) <= most else words[: most - 1] + "…"


def name(text: str) -> str:
    """A host's, group's or value's name in one line."""
    return line(text, NAME_CHARACTERS)


def embedded(value: object) -> str:
    """JSON for a script element: ASCII only, and without a character that means something to an HTML parser."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).translate(_MARKUP)


def folded(names: Sequence[str]) -> str:
    """Host names in short: ``gpu[01-03],login1``; such as are no plain names are listed."""
    if all(_PLAIN_NAME.fullmatch(host) for host in names):
        return fold(names)
    return ", ".join(map(name, names))


def first(items: Iterable[T], most: int) -> tuple[list[T], int]:
    """The first of a list, and how many more there are."""
    listed = list(items)
    return listed[:most], max(0, len(listed) - most)


def moment(iso: str) -> str:
    """``2026-11-21 10:00 UTC``; what is no time stays as it is."""
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
    """The day that a point of a history is about; ``None`` where it names none."""
    try:
        return date.fromisoformat(iso)
    except ValueError:
        return None
