"""Text for people: foreign text made safe to print, and numbers with their nouns."""

from __future__ import annotations

import unicodedata

LINE_CHARACTERS = 160  #: of one text of a host in a line


def printable(text: str) -> str:
    """Text from a host made safe to print: a control, format or unassigned character becomes ``\\ufffd``."""
    if text.isprintable():  # nearly all of it is, and a fleet's reports hold a hundred thousand texts
        return text
    return "".join(
        char if char in "\n\t" or not unicodedata.category(char).startswith("C") else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def short(text: str) -> str:
    """Text of a host in one line of bounded length."""
    line = " ".join(printable(text[: 4 * LINE_CHARACTERS]).split())
    return line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…"


def count(number: int, noun: str) -> str:
    """``1 change``, ``2 changes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
