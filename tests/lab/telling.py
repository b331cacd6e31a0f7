"""pytest plugin that prints scores and tables of tests after all results."""

from __future__ import annotations

from typing import Any

import pytest

_TOLD = pytest.StashKey[list[str]]()


def tell(config: pytest.Config, text: str) -> None:
    """Print a text at the end of the session."""
    config.stash.setdefault(_TOLD, []).append(text)


class Telling:
    """The plugin that prints the texts."""

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print the texts."""
        for text in config.stash.get(_TOLD, []):
            terminalreporter.write_line(text)
