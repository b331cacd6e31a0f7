"""The page for new users: its commands and its inventory, as printed."""

from __future__ import annotations

import re

from tests.unit.support.documents import blocks

PAGE = "docs/start/first-hour.md"


def inventory() -> str:
    """Return the page's inventory."""
    return next(block.text for block in blocks(PAGE) if block.language == "yaml")


def commands() -> list[str]:
    """Return the commands of the page in order: lines with a prompt, joined with continuation lines."""
    text = "\n".join(block.text for block in blocks(PAGE) if block.language in {"console", "shell-session"})
    return re.findall(r"^\$ (.*)", text.replace("\\\n", ""), re.MULTILINE)
