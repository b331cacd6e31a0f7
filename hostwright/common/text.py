"""Text for people: untrusted text made safe to print, docstrings as Markdown, and numbers with their nouns."""

from __future__ import annotations

import re
import unicodedata

LINE_CHARACTERS = 160  #: of a host's text in a line

_SPECIAL = re.compile(r"[\\*<>\[\]]|(?<!\w)_|_(?!\w)")  #: what Markdown would read as markup


def printable(text: str) -> str:
    """Text from a host made safe to print: a control, format or unassigned character becomes ``\\ufffd``."""
    if text.isprintable():  # nearly always; a fleet's reports hold a hundred thousand texts
        return text
    return "".join(
        char if char in "\n\t" or not unicodedata.category(char).startswith("C") else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def one_line(text: str) -> str:
    """Text from a host on one line: what it says never begins a line, where it could pass for another host's."""
    return " ".join(printable(text).splitlines())


def short(text: str) -> str:
    """A host's text as a single line of bounded length."""
    line = " ".join(printable(text[: 4 * LINE_CHARACTERS]).split())
    return line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…"


def count(number: int, noun: str) -> str:
    """``1 change``, ``2 changes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown_bytes(number: int) -> str:
    """``34 MB``, ``5.2 GB``: bytes in powers of ten, as disks are sold."""
    return f"{number / 1e9:.1f} GB" if number >= 10**9 else f"{number / 1e6:.0f} MB"


def markdown(text: str) -> str:
    r"""Text escaped for Markdown; text in double backticks (reStructuredText) becomes code.

    >>> print(markdown("remove lib* with ``rm -f -- *``"))
    remove lib\* with `rm -f -- *`
    """
    parts = text.split("``")
    if len(parts) % 2 == 0:
        return _SPECIAL.sub(r"\\\g<0>", text)
    return "".join(f"`{part}`" if number % 2 else _SPECIAL.sub(r"\\\g<0>", part) for number, part in enumerate(parts))
