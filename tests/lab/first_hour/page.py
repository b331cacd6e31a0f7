"""The page that a new user reads: its commands and its inventory, as they are printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.places import PROJECT

PAGE = PROJECT / "docs/start/first-hour.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, page: Path = PAGE) -> Iterator[str]:
    """The blocks of a language, in the order of the page."""
    return (text for kind, text in _BLOCK.findall(page.read_text()) if kind == language)


def commands() -> list[str]:
    """What a reader types, in the order of the page: the lines with a prompt, with what follows a backslash."""
    text = "\n".join(block for kind, block in _BLOCK.findall(PAGE.read_text()) if kind in {"console", "text"})
    return re.findall(r"^\$ (.*)", text.replace("\\\n", ""), re.MULTILINE)
