"""Scores and tables that tests show below the results of all tests."""

from __future__ import annotations

from typing import Any

import pytest

_TOLD = pytest.StashKey[list[str]]()


def tell(config: pytest.Config, text: str) -> None:
    """Show a text at the end."""
    config.stash.setdefault(_TOLD, []).append(text)


class Telling:
    """The plugin that shows what was told."""

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Show it."""
        for text in config.stash.get(_TOLD, []):
            terminalreporter.write_line(text)
