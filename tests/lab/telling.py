"""Scores and tables that tests show at the end, also where several processes run the tests side by side."""

from __future__ import annotations

from typing import Any

import pytest

_TOLD = pytest.StashKey[list[str]]()


def tell(config: pytest.Config, text: str) -> None:
    """Show a text below the results of all tests."""
    config.stash.setdefault(_TOLD, []).append(text)


class Telling:
    """The plugin that carries the texts from the processes that run tests to the one that reports."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a process of pytest-xdist: hand over what was told."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["told"] = session.config.stash.get(_TOLD, [])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """In the process that reports: take it over. A process that crashed has told nothing."""
        for text in getattr(node, "workeroutput", {}).get("told", []):
            tell(node.config, text)

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Show it."""
        for text in config.stash.get(_TOLD, []):
            terminalreporter.write_line(text)
