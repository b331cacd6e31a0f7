"""Fixtures for users who make mistakes: each has a site of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.mistakes.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk with a new site."""
    return Desk(tmp_path)
