"""Formats text for output: output from hosts, docstrings as Markdown, numbers with units or nouns."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime

LINE_CHARACTERS = 160  #: maximum number of characters on one line of text from a host

_SPECIAL = re.compile(r"[\\*<>\[\]]|(?<!\w)_|_(?!\w)")


def printable(text: str) -> str:
    """Replace each character that is unsafe to print (control, format, unassigned) by ``\\ufffd``."""
    if text.isprintable():  # This fast path matters, since the reports about a fleet contain 100,000 texts.
        return text
    return "".join(
        char if char in "\n\t" or not unicodedata.category(char).startswith("C") else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def one_line(text: str) -> str:
    """Join the lines of a host's text, so that no part of it looks like the output of another host."""
    return " ".join(printable(text).splitlines())


def short(text: str) -> str:
    """Return a host's text as one line of at most ``LINE_CHARACTERS`` characters."""
    line = " ".join(printable(text[: 4 * LINE_CHARACTERS]).split())
    return line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…"


def differences(before: str, after: str) -> str:
    """Describe how two comma-separated lists differ, as pairs of changed values.

    An equal first word of a pair is not repeated.

    >>> differences("Tesla T4, serial 1, GPU-a", "Tesla T4, serial 2, GPU-b")
    'serial 1 → 2, GPU-a → GPU-b'
    >>> differences("Tesla T4, GPU-a", "Tesla T4, serial 2, GPU-b")
    'GPU-a → serial 2, GPU-b'
    """
    old, new = before.split(", "), after.split(", ")
    gone, come = [part for part in old if part not in new], [part for part in new if part not in old]
    if len(gone) != len(come) or not gone:
        return f"{', '.join(gone) or 'nothing'} → {', '.join(come) or 'nothing'}"
    return ", ".join(f"{one} → {_after_its_word(one, two)}" for one, two in zip(gone, come, strict=True))


def _after_its_word(one: str, two: str) -> str:
    word, space, _ = one.partition(" ")
    return two.removeprefix(word + space) if space else two


def count(number: int, noun: str) -> str:
    """Return ``number`` with its noun: ``1 change``, ``2 changes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown_bytes(number: int) -> str:
    """Format bytes in powers of ten, as disks are sold: ``0 B``, ``5 kB``, ``34 MB``, ``5.2 GB``."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size - size // 2000:  # A number just below ``size`` would round to 1000 of the smaller unit.
            return f"{number / size:.1f} GB" if unit == "GB" else f"{number / size:.0f} {unit}"
    return f"{number} B"


def shown_seconds(seconds: float) -> str:
    """Format a duration: ``4.2 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if seconds < 59.95:  # Longer durations would round to 60.0 s.
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def shown_limit(seconds: float) -> str:
    """Format a time limit in whole units: ``90 s``, ``20 min``, ``2 h``.

    >>> [shown_limit(seconds) for seconds in (5, 90, 1200, 1234.0, 7200)]
    ['5 s', '90 s', '20 min', '20 min 34 s', '2 h']
    """
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if rest:
        return shown_seconds(seconds)
    return f"{minutes} min" if minutes % 60 else f"{minutes // 60} h"


def ago(seconds: float) -> str:
    """Format an age: ``just now``, ``2 min ago``, ``5 h ago``, ``3 days ago``.

    A negative age is also ``just now``: another machine's clock may be ahead.
    """
    minutes = int(seconds // 60)
    if minutes < 1:
        return "just now"
    if minutes < 120:
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days ago"


def local_time(at: datetime | str) -> str:
    """Format the time ``at`` in the local time zone: ``2026-11-21 10:04``. Text that is not ISO 8601 is unchanged."""
    try:
        return (datetime.fromisoformat(at) if isinstance(at, str) else at).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return str(at)


def markdown(text: str) -> str:
    r"""Escape ``text`` for Markdown. Text in double backticks (reStructuredText) becomes Markdown code.

    >>> print(markdown("remove lib* with ``rm -f -- *``"))
    remove lib\* with `rm -f -- *`
    """
    parts = text.split("``")
    if len(parts) % 2 == 0:
        return _SPECIAL.sub(r"\\\g<0>", text)
    return "".join(f"`{part}`" if number % 2 else _SPECIAL.sub(r"\\\g<0>", part) for number, part in enumerate(parts))
