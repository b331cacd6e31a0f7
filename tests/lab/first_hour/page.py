"""The page that a new user reads: its commands and its inventory, as they are printed."""

from __future__ import annotations

import re

from tests.unit.support.documents import blocks

PAGE = "docs/start/first-hour.md"


def inventory() -> str:
    """The page's inventory."""
    return next(block.text for block in blocks(PAGE) if block.language == "yaml")


def commands() -> list[str]:
    """What a reader types, in the order of the page: the lines with a prompt, with what follows a backslash."""
    text = "\n".join(block.text for block in blocks(PAGE) if block.language in {"console", "shell-session"})
    return re.findall(r"^\$ (.*)", text.replace("\\\n", ""), re.MULTILINE)
