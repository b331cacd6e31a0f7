"""Text for people: foreign text made safe to print, and numbers with their nouns."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Text from a host made safe to print: a control, format or unassigned character becomes ``\\ufffd``."""
    if text.isprintable():  # nearly all of it is, and a fleet's reports hold a hundred thousand texts
        return text
    return "".join(
        char if char in "\n\t" or not unicodedata.category(char).startswith("C") else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def count(number: int, noun: str) -> str:
    """``1 change``, ``2 changes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
